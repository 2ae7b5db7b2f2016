import { checkStoreArgument } from "../session/check-arguments.ts";
import { createHeader, type SessionHeader } from "../session/log/header.ts";
import type { SessionStore } from "../session/store.ts";
import { SessionTree } from "./session-tree.ts";

/**
 * A new session of a store, opened for reading, navigating and appending. What the header does not say is filled in, an
 * id among it. Closing the tree leaves the store open.
 *
 * @example
 * const store = await openStore("sqlite:./sessions.db");
 * const tree = await createTree(store, { userId: "user-1" });
 * await tree.appendMessage({ role: "user", content: "Name a prime above 90." });
 *
 * @throws {SessionError} `INVALID_OPTION` for what is no store, `INVALID_HEADER` or `INVALID_ID` for what is no header,
 * `SESSION_EXISTS` for an id that the store has already.
 */
export async function createTree(store: SessionStore, header: Partial<SessionHeader> = {}): Promise<SessionTree> {
  checkStoreArgument(store, "createTree");
  const head = await store.create(createHeader(header));
  return SessionTree.on(store, head.header.id);
}

/**
 * A session that a store has, opened for reading, navigating and appending. Closing the tree leaves the store open.
 *
 * @example
 * const store = await openStore("sqlite:./sessions.db");
 * const tree = await openTree(store, "the-id-of-a-session");
 * const { messages } = await tree.buildContext();
 *
 * @throws {SessionNotFoundError} when the store has no session of that id.
 * @throws {SessionError} `INVALID_OPTION` for what is no store, `INVALID_ID` for what no session can be called.
 */
export async function openTree(store: SessionStore, id: string): Promise<SessionTree> {
  checkStoreArgument(store, "openTree");
  return SessionTree.on(store, id);
}
