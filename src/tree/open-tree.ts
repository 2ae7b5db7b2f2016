import { checkStoreArgument } from "../session/check-arguments.ts";
import { createHeader, type SessionHeader } from "../session/log/header.ts";
import type { SessionStore } from "../session/store.ts";
import { SessionTree } from "./session-tree.ts";

/**
 * Creates a session in a store, and opens it for reading, navigating and appending. Missing fields of the header get their
 * defaults, such as a new id. Closing the tree leaves the store open.
 *
 * @example
 * const store = await openStore("sqlite:./sessions.db");
 * const tree = await createTree(store, { userId: "user-1" });
 * await tree.appendMessage({ role: "user", content: "Name a prime above 90." });
 *
 * @throws {SessionError} `INVALID_OPTION` for an invalid store, `INVALID_HEADER` or `INVALID_ID` for an invalid header,
 * `SESSION_EXISTS` if the store already has this id.
 */
export async function createTree(store: SessionStore, header: Partial<SessionHeader> = {}): Promise<SessionTree> {
  checkStoreArgument(store, "createTree");
  const head = await store.create(createHeader(header));
  return SessionTree.on(store, head.header.id);
}

/**
 * Opens a session of a store for reading, navigating and appending. Closing the tree leaves the store open.
 *
 * @example
 * const store = await openStore("sqlite:./sessions.db");
 * const tree = await openTree(store, "the-id-of-a-session");
 * const { messages } = await tree.buildContext();
 *
 * @throws {SessionNotFoundError} if the store has no session with this id.
 * @throws {SessionError} `INVALID_OPTION` for an invalid store, `INVALID_ID` for an invalid id.
 */
export async function openTree(store: SessionStore, id: string): Promise<SessionTree> {
  checkStoreArgument(store, "openTree");
  return SessionTree.on(store, id);
}
