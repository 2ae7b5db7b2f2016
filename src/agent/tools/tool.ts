import type { JsonObject } from "../../internal/json.ts";
import type { Content } from "../../session/message.ts";
import type { Sandbox } from "../../session/sandbox/sandbox.ts";
import type { Session } from "../../session/value/session.ts";
import type { ToolSchema } from "../../session/log/setup.ts";
import type { ToolEffects } from "./tool-effects.ts";

/** What a tool may use while it runs. */
export interface ToolContext {
  /** The run's session: its transcript is a live view of what has been said so far. */
  readonly session: Session;
  /** The session's sandbox where it is open already, else null. */
  readonly sandbox: Sandbox | null;
  /** The session's sandbox, opened if need be. @throws {SessionError} `NO_SANDBOX` when the session has no place for one. */
  requireSandbox(): Promise<Sandbox>;
  /** Aborts when the run is aborted and when the tool's time is over. */
  readonly signal: AbortSignal;
  readonly callId: string;
  readonly runId: string;
  /**
   * The token of the lease that the run holds its session under; null where it holds none. Of two who ever held the session,
   * the later one has the larger token: what refuses a smaller one than it has seen is safe from a process that froze.
   */
  readonly leaseToken: number | null;
}

/** What came of checking a call's arguments: the value to run with, or a sentence that the model can act on. */
export type CheckedArguments =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: string };

/**
 * Something a model can call. `defineTool` makes one.
 *
 * - `execute` gets checked arguments. What it returns goes to the model: a text as it is, a `ToolContent` with its parts,
 *   anything else as JSON. What it throws goes to the model as an error, and the run goes on.
 * - Calls of one round run side by side, except that equal resource keys run in call order and an exclusive tool runs
 *   alone.
 */
export interface Tool {
  readonly schema: ToolSchema;
  check(args: unknown): CheckedArguments | Promise<CheckedArguments>;
  execute(args: unknown, context: ToolContext): unknown;
  /** Calls with an equal key run one after another, in call order; null is a key of no other call. */
  resourceKey?(args: unknown): string | null;
  /** Runs alone: after all calls before it, and before all calls after it. */
  readonly exclusive?: boolean;
  /** Running it again does no harm, so that a recovered run may do so. */
  readonly idempotent?: boolean;
  /** What its calls can do; a tool that does not say counts as `commands`. What runs without a question hangs on it. */
  readonly effects?: ToolEffects;
  /** It acts in the session's sandbox and nowhere else, so that whoever is asked is told what can be reached from there. */
  readonly sandboxed?: boolean;
  /** Nobody vouched for it (the tool of a foreign server): asks each time, unless `ask: "never"` is written out. */
  readonly untrusted?: boolean;
  /** Whether a person must agree before it runs, whatever the option `ask` is. */
  needsApproval?(args: unknown): boolean | Promise<boolean>;
  readonly timeoutMs?: number;
}

/** A result that a tool gives as content parts (images, for one) instead of text. */
export interface ToolContent {
  readonly content: Content;
  readonly isError?: boolean;
}

/** The parameters of a tool without any. */
export const NO_PARAMETERS: JsonObject = Object.freeze({ type: "object", properties: {}, additionalProperties: false });
