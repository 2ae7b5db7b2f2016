import type { JsonValue } from "../../internal/json.ts";
import type { CompactionPlan } from "./compaction.ts";
import type { Entry } from "../log/entry.ts";

/** The result of a `before…` handler: nothing, a cancellation, or a summary that replaces the model's. */
export type HookResult =
  | undefined
  | { readonly cancel: true; readonly reason?: string }
  | { readonly summary: string; readonly details?: JsonValue };

/**
 * Handlers around compacting, forking and moving. Several sets run in the order given.
 *
 * - An error of a handler is reported, and the handler is skipped.
 * - The first `cancel` stops the operation with the error `CANCELLED`; otherwise the last summary is used.
 * - Handlers after an operation cannot undo it.
 */
export interface SessionHooks {
  beforeCompact?(event: {
    readonly sessionId: string;
    readonly plan: CompactionPlan;
  }): HookResult | Promise<HookResult>;
  compact?(event: { readonly sessionId: string; readonly entry: Entry }): void | Promise<void>;
  beforeFork?(event: { readonly sessionId: string; readonly entryId: string | null }): HookResult | Promise<HookResult>;
  fork?(event: {
    readonly sessionId: string;
    readonly entryId: string | null;
    readonly newSessionId: string;
  }): void | Promise<void>;
  /** Before the leaf moves; a summary given here is appended as a `branch_summary` at the target. */
  beforeTree?(event: {
    readonly sessionId: string;
    readonly fromId: string | null;
    readonly targetId: string | null;
  }): HookResult | Promise<HookResult>;
  tree?(event: {
    readonly sessionId: string;
    readonly fromId: string | null;
    readonly targetId: string | null;
  }): void | Promise<void>;
}
