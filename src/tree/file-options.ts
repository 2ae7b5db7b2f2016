import { type SessionHooks, type HookReport, HookRunner } from "../session/context/hooks.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { Payer } from "../session/payer.ts";
import type { KeysOf } from "../session/check-arguments.ts";
import type { AppendResult, Guard } from "../session/store.ts";

/** Options of every tree. */
export interface TreeOptions {
  /** Handlers around compacting, forking and moving; several sets run in order. */
  readonly hooks?: SessionHooks | readonly SessionHooks[];
  /** Called when a handler has thrown (default: emits a process warning). */
  readonly onHookError?: HookReport;
}

/** Options for opening a session of a store as a tree. */
export interface StoreTreeOptions extends TreeOptions {
  /** The guard of every append of the tree. The end of a run is recorded whatever the status of the session. */
  readonly guard?: Guard;
  /** The user who is recorded as the author of the tree's appends. Appends of a run under its lease are not affected. */
  readonly by?: string;
  /** Called after each append with the new entries. The append waits for it. It must not throw. */
  readonly onAppend?: (result: AppendResult) => void | Promise<void>;
  /** The session's head, if it was just read, so that it is not read again. */
  readonly head?: SessionHead;
  /** The payer of requests to models about the session (default: none). */
  readonly payerIn?: (head: SessionHead) => Payer | null;
}

/** Options for creating or opening a session's file. */
export interface FileOptions extends TreeOptions {
  /** The directory of session files (default: `defaultSessionDirectory()`). */
  readonly directory?: string;
  /** The new session's id (default: a UUIDv7). */
  readonly id?: string;
  /** The first entry for which a new session's file is written (default `"assistant"`: a model's first answer). */
  readonly persistFrom?: "assistant" | "message" | "create";
  /** `"flush"` (default): an append survives the process; `"fsync"`: it survives a power cut too. */
  readonly durability?: "flush" | "fsync";
  /** Refuse every write. */
  readonly readOnly?: boolean;
  /** Open a damaged file read-only, with a `lost` node instead of each entry that cannot be read. */
  readonly salvage?: boolean;
  /** If another writer has the file open: share it with a lock for each write (default), open it read-only, or throw. */
  readonly ifInUse?: "share" | "read-only" | "refuse";
}

/** The keys of `TreeOptions`. */
export const TREE_KEYS: KeysOf<TreeOptions> = { hooks: true, onHookError: true };

/** The keys of `StoreTreeOptions`. */
export const STORE_TREE_KEYS: KeysOf<StoreTreeOptions> = {
  ...TREE_KEYS,
  guard: true,
  by: true,
  onAppend: true,
  head: true,
  payerIn: true,
};

/** The keys of `FileOptions`. */
export const FILE_KEYS: KeysOf<FileOptions> = {
  ...TREE_KEYS,
  directory: true,
  id: true,
  persistFrom: true,
  durability: true,
  readOnly: true,
  salvage: true,
  ifInUse: true,
};

/** The hook runner for the options. Without `onHookError`, failures of handlers are process warnings. */
export function hookRunner(options: TreeOptions): HookRunner {
  const report: HookReport = (error, hook) => process.emitWarning(`A ${hook} handler failed: ${String(error)}`);
  return new HookRunner(options.hooks === undefined ? [] : [options.hooks].flat(), options.onHookError ?? report);
}
