import { checkOptionsOf, type Habits, type KeysOf } from "../session/check-arguments.ts";
import { isAbsolute } from "node:path";
import { SessionError, show } from "../session/errors.ts";
import type { SessionStore } from "../session/store.ts";
import { makeWorkspace, namedPath } from "../stores/named-path.ts";
import { openStore } from "../stores/open-store.ts";
import { storePathOf } from "../stores/store-path.ts";
import { defaultStoreUrl, isChosenStore } from "../tree/home.ts";
import { checkWorkspace, MANAGER_KEYS, type SessionManagerInit } from "./manager-options.ts";
import { UNLIMITED_SESSIONS } from "./session-config.ts";
import { SessionManager } from "./session-manager.ts";

/** Options of `openManager`, beside those of `SessionManager`. */
export interface OpenManagerOptions extends Omit<SessionManagerInit, "store"> {
  /**
   * The store: a URL for `openStore`, or an open store, which the caller closes (default: `$SKEIN_STORE`, else `skein.db` in
   * `$SKEIN_HOME` or `~/.skein`, as on the command line).
   */
  readonly store?: string | SessionStore;
  /** Creates missing parent directories of the store and the workspace; without it, they are an error. */
  readonly create?: boolean;
}

/** Options of other libraries, with what to write instead. */
const HABITS: Habits = {
  url: 'name a store as { store: "postgres://…" }',
  path: 'name a store as { store: "sqlite:./sessions.db" }',
  directory: 'name a store as { store: "jsonl:./sessions" }',
  cwd: "the directory that tools act in is workspace",
};

/**
 * Opens the sessions of this user, or of a program: the same that `skein list`, `skein chat` and the studio show. A store that is
 * opened here is closed with the manager.
 *
 * @example
 * await using manager = await openManager({ workspace: "." });
 * const agent = createAgent({ name: "helper", prompt: "You keep a small workspace.", model: "openai/gpt-5-mini" });
 * const answer = await manager.run(agent, "write hello to a.txt");
 * await manager.run(answer.sessionId, agent, "and now to b.txt");
 *
 * @throws {SessionError} `INVALID_OPTION` for a URL without a store, a missing directory, or a `$SKEIN_STORE` with a relative
 * path, and the errors of opening the store.
 */
export async function openManager(options: OpenManagerOptions = {}): Promise<SessionManager> {
  checkOptionsOf(
    options,
    { ...MANAGER_KEYS, create: true } satisfies KeysOf<OpenManagerOptions>,
    "openManager",
    HABITS,
  );
  const { store: given = ownStoreUrl(), create = false, config, ...rest } = options;
  checkWorkspace(rest.workspace);
  const isOpened = typeof given === "string";
  const store = isOpened ? await openStore(given, { create: create || isChosenStore(given) }) : given;
  try {
    if (rest.workspace !== undefined) await makeWorkspace(namedPath(rest.workspace), { create });
    const init = { ...rest, store, config: { ...UNLIMITED_SESSIONS, ...config } };
    return isOpened ? new OwningManager(init) : new SessionManager(init);
  } catch (error) {
    if (isOpened) await store.close();
    throw error;
  }
}

/** A manager that closes its store, because it has opened it. */
class OwningManager extends SessionManager {
  override async [Symbol.asyncDispose](): Promise<void> {
    try {
      await super[Symbol.asyncDispose]();
    } finally {
      await this.store.close();
    }
  }
}

/**
 * @throws {SessionError} `INVALID_OPTION` for a `$SKEIN_STORE` with a relative path: it would mean another store in every
 * directory.
 */
function ownStoreUrl(): string {
  const url = defaultStoreUrl();
  const path = storePathOf(url);
  if (path === null || isAbsolute(path)) return url;
  throw new SessionError(
    "INVALID_OPTION",
    `SKEIN_STORE is ${show(url)}, which means another store wherever a program starts; set it to an absolute path, or name the store in code: openManager({ store: ${show(url)} }).`,
  );
}
