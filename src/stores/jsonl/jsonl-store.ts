import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import { resolve } from "node:path";
import { checkDrafts } from "../../session/log/draft.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { checkHeader, type SessionHeader } from "../../session/log/header.ts";
import { BLOB_OPTIONS, type BlobOptions } from "../../session/blob.ts";
import type { SessionStore } from "../../session/store.ts";
import { createStore } from "../complete/create-store.ts";
import { storeClosed } from "../complete/store-closed.ts";
import { checkChoice, checkPath, invalidOption } from "../complete/valid-arguments.ts";
import { makeParent } from "../named-path.ts";
import { finalPathOf, partialPathOf } from "./file-names.ts";
import { JsonlDriver } from "./jsonl-driver.ts";
import { createSession } from "./make-session.ts";
import { renameSession } from "./move-session.ts";
import type { Damage } from "./salvage.ts";
import { withStoreErrors } from "./store-failure.ts";

const LOCK_TIMEOUT_MS = 10_000;

/** Options of `openJsonlStore`. */
export interface JsonlStoreOptions extends BlobOptions {
  /** The directory of the session files. It is created with the first session. */
  readonly directory: string;
  /** Also create missing parent directories. Without it, a missing parent is an error. */
  readonly create?: boolean;
  /** `"flush"` (default): an append survives the process; `"fsync"`: it survives a power cut too. */
  readonly durability?: "flush" | "fsync";
  /** Refuse every write, and create nothing. */
  readonly readOnly?: boolean;
  /** Open damaged files too, read-only, with a `lost` node in place of each entry that cannot be read. */
  readonly salvage?: boolean;
  /** How long an append waits for the lock of another process (default 10,000). */
  readonly lockTimeoutMs?: number;
  /** Returns the current time (default: the system's clock). */
  readonly clock?: () => Date;
}

const OPTIONS: KeysOf<JsonlStoreOptions> = {
  directory: true,
  durability: true,
  readOnly: true,
  salvage: true,
  lockTimeoutMs: true,
  create: true,
  clock: true,
  ...BLOB_OPTIONS,
};

/** The options with their defaults, and the absolute path of the directory. */
export type JsonlSettings = Required<Omit<JsonlStoreOptions, "create" | keyof BlobOptions>>;

/** A store that keeps each session in its own file. */
export interface JsonlStore extends SessionStore {
  /** The path of a session's file, even if it cannot be read; null if there is none. */
  pathOf(sessionId: string): Promise<string | null>;
  /**
   * Opens a session file of any name in any directory, and returns its session's id. From then on the id refers to this
   * file.
   *
   * @throws {SessionError} `NOT_A_SESSION` for a file of another kind, `UNSUPPORTED_VERSION` for one of a later
   * version.
   * @throws {SessionDamagedError} for a damaged one, unless the store salvages.
   */
  openFile(path: string): Promise<string>;
  /**
   * Creates a session in a file of any name, for the one run that writes it. `path` is in the store's directory.
   *
   * @throws {SessionError} `SESSION_EXISTS` if the file or the session exists.
   */
  createFile(path: string, header: SessionHeader, entries: readonly EntryDraft[]): Promise<SessionHead>;
  /** Renames a session's file, so that its suffix shows whether a run is still writing it. Resolves to the new path. */
  setPartial(sessionId: string, partial: boolean): Promise<string>;
  /** The parts of a session's file that cannot be read; empty if it is not damaged. */
  damageOf(sessionId: string): Promise<Damage[]>;
}

/**
 * Opens a store that keeps each session in a file `<UTC timestamp>_<id>.jsonl` of one directory. Several processes
 * may use the directory at once. Reading writes nothing.
 *
 * @throws {SessionError} `INVALID_OPTION`.
 */
export async function openJsonlStore(options: JsonlStoreOptions): Promise<JsonlStore> {
  checkOptionsOf(options, OPTIONS, "openJsonlStore");
  const {
    directory,
    create = false,
    durability = "flush",
    readOnly = false,
    salvage = false,
    lockTimeoutMs = LOCK_TIMEOUT_MS,
    clock = () => new Date(),
  } = options;
  checkPath(directory, "directory");
  checkChoice(durability, "durability", ["flush", "fsync"]);
  if (!Number.isFinite(lockTimeoutMs) || lockTimeoutMs < 0)
    throw invalidOption("lockTimeoutMs", lockTimeoutMs, "a number of 0 or more");
  const path = resolve(directory);
  if (!readOnly) await makeParent(path, { create, what: "the store" });
  const driver = new JsonlDriver({
    directory: path,
    durability,
    readOnly,
    salvage,
    lockTimeoutMs,
    clock,
  });
  return extend(createStore(driver, options), driver);
}

function extend(store: SessionStore, driver: JsonlDriver): JsonlStore {
  let closed = false;
  const close = store.close.bind(store);
  const { files } = driver;
  const whileOpen = <T>(task: () => Promise<T>): Promise<T> =>
    withStoreErrors(() => {
      if (closed) throw storeClosed();
      return task();
    });
  return Object.assign(store, {
    pathOf: (sessionId: string) => whileOpen(async () => (await files.live.locate(sessionId))?.paths.log ?? null),
    createFile: (path: string, header: SessionHeader, entries: readonly EntryDraft[]) =>
      whileOpen(() => {
        const [checked, drafts] = [checkHeader(header), checkDrafts(entries, { verbatim: true })];
        return createSession(files, checked, drafts, { path });
      }),
    setPartial: (sessionId: string, partial: boolean) =>
      whileOpen(() => files.change(() => renameSession(files, sessionId, partial ? partialPathOf : finalPathOf))),
    openFile: (path: string) => whileOpen(async () => (await files.live.open(path)).head.header.id),
    damageOf: (sessionId: string) => whileOpen(async () => [...((await files.live.locate(sessionId))?.damage ?? [])]),
    close: () => {
      closed = true;
      return close();
    },
  });
}
