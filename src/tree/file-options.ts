import { type SessionHooks, type HookReport, HookRunner } from "../session/context/hooks.ts";
import type { AppendResult, Guard } from "../session/store.ts";

/** How a tree treats its session. */
export interface TreeOptions {
  /** Handlers around compacting, forking and moving; several sets run in order. */
  readonly hooks?: SessionHooks | readonly SessionHooks[];
  /** Told of a handler that threw (default: a process warning). */
  readonly onHookError?: HookReport;
}

/** How a session of a store is opened. */
export interface StoreTreeOptions extends TreeOptions {
  /** What must hold for every append of the tree; only how a run ended goes on record whatever the status. */
  readonly guard?: Guard;
  /** The user who causes what the tree appends; what a run writes under its lease is the run's own. */
  readonly by?: string;
  /** Called after each append with the entries that are new; the append waits for it. It must not fail. */
  readonly onAppend?: (result: AppendResult) => void | Promise<void>;
}

/** How a session's file is made or opened. */
export interface FileOptions extends TreeOptions {
  /** Where session files are (default: `defaultSessionDirectory()`). */
  readonly directory?: string;
  /** The new session's id (default: a UUIDv7). */
  readonly id?: string;
  /** What a new session must hold before its file is written (default `"assistant"`: a model's first answer). */
  readonly persistFrom?: "assistant" | "message" | "create";
  /** `"flush"` (default): an append survives the process; `"fsync"`: it survives a power cut too. */
  readonly durability?: "flush" | "fsync";
  /** Refuse every write. */
  readonly readOnly?: boolean;
  /** Open a damaged file read-only, with a `lost` node instead of each entry that cannot be read. */
  readonly salvage?: boolean;
  /** What to do when another writer has the file open: write in turn (default), open it read-only, or refuse. */
  readonly ifInUse?: "share" | "read-only" | "refuse";
}

/** The handlers of the options; where the caller does not want to hear of failures, they are process warnings. */
export function hookRunner(options: TreeOptions): HookRunner {
  const report: HookReport = (error, hook) => process.emitWarning(`A ${hook} handler failed: ${String(error)}`);
  return new HookRunner(options.hooks === undefined ? [] : [options.hooks].flat(), options.onHookError ?? report);
}
