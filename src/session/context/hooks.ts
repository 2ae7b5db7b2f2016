import { checkObjects } from "../check-arguments.ts";
import type { JsonValue } from "../../internal/json.ts";
import type { CompactionPlan } from "./compaction.ts";
import type { Entry } from "../log/entry.ts";
import { SessionError } from "../errors.ts";

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

/** Called when a handler throws; the operation continues without it. */
export type HookReport = (error: unknown, hook: keyof SessionHooks) => void;

type Before = "beforeCompact" | "beforeFork" | "beforeTree";
type After = "compact" | "fork" | "tree";
type EventOf<K extends keyof SessionHooks> = Parameters<NonNullable<SessionHooks[K]>>[0];

/** Runs sets of handlers in order, and reports their errors. */
export class HookRunner {
  readonly #hooks: readonly SessionHooks[];
  readonly #report: HookReport;

  constructor(hooks: readonly SessionHooks[], report: HookReport) {
    checkObjects(hooks, "HookRunner", "a list of handlers");
    this.#hooks = hooks;
    this.#report = report;
  }

  /** Returns a runner of these handlers followed by others. */
  with(hooks: readonly SessionHooks[]): HookRunner {
    checkObjects(hooks, "with", "a list of handlers");
    return new HookRunner([...this.#hooks, ...hooks], this.#report);
  }

  /**
   * Calls the handlers before an operation; returns the last summary, or null.
   *
   * @throws {SessionError} `CANCELLED` if a handler cancels.
   */
  async before<K extends Before>(name: K, event: EventOf<K>): Promise<Extract<HookResult, { summary: string }> | null> {
    let last: Extract<HookResult, { summary: string }> | null = null;
    for (const hooks of this.#hooks) {
      const result = await this.#call(hooks, name, event);
      if (typeof result !== "object") continue;
      if ("cancel" in result && result.cancel) {
        throw new SessionError(
          "CANCELLED",
          `A ${name} handler cancelled this${result.reason === undefined ? "" : `: ${result.reason}`}.`,
        );
      }
      if ("summary" in result) last = result;
    }
    return last;
  }

  /** Calls the handlers after an operation. */
  async after<K extends After>(name: K, event: EventOf<K>): Promise<void> {
    for (const hooks of this.#hooks) await this.#call(hooks, name, event);
  }

  async #call<K extends keyof SessionHooks>(hooks: SessionHooks, name: K, event: EventOf<K>): Promise<HookResult> {
    const handler = hooks[name] as ((event: EventOf<K>) => HookResult | Promise<HookResult>) | undefined;
    try {
      return (await handler?.call(hooks, event)) ?? undefined;
    } catch (error) {
      this.#report(error, name);
      return undefined;
    }
  }
}
