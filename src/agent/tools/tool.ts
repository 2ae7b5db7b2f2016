import type { JsonObject } from "../../internal/json.ts";
import type { Content } from "../../session/message.ts";
import type { Sandbox } from "../../session/sandbox/sandbox.ts";
import type { Session } from "../../session/value/session.ts";
import type { ToolSchema } from "../../session/log/setup.ts";
import type { ToolEffects } from "./tool-effects.ts";

/** The context that a tool gets while it runs. */
export interface ToolContext {
  /** The run's session; its transcript is a live view of the messages so far. */
  readonly session: Session;
  /** The session's sandbox if it is already open, otherwise null. */
  readonly sandbox: Sandbox | null;
  /**
   * The session's sandbox; opens it if necessary. @throws {SessionError} `NO_SANDBOX` if the session has no sandbox
   * placement.
   */
  requireSandbox(): Promise<Sandbox>;
  /** Aborted when the run is aborted and when the tool times out. */
  readonly signal: AbortSignal;
  readonly callId: string;
  readonly runId: string;
  /**
   * The fencing token: the token of the lease under which the run holds its session; null without a lease. A later
   * holder has a larger token, so a service that refuses smaller tokens than it has seen is safe from a process that
   * froze.
   */
  readonly leaseToken: number | null;
}

/** The result of validating a call's arguments: the value to run with, or a sentence for the model. */
export type CheckedArguments =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly problem: string };

/**
 * A function that a model can call. `defineTool` creates one.
 *
 * - `execute` gets validated arguments. Its result is sent to the model: a string unchanged, a `ToolContent` with its
 *   parts, any other value as JSON. An error that it throws is sent to the model, and the run continues.
 * - Calls of one round run concurrently, except that equal resource keys run in call order and an exclusive tool runs
 *   alone.
 */
export interface Tool {
  readonly schema: ToolSchema;
  check(args: unknown): CheckedArguments | Promise<CheckedArguments>;
  execute(args: unknown, context: ToolContext): unknown;
  /** Calls with equal keys run one after another, in call order; a null key is equal to no other. */
  resourceKey?(args: unknown): string | null;
  /** Runs alone: after all calls before it, and before all calls after it. */
  readonly exclusive?: boolean;
  /** Repeating a call is harmless, so a recovered run may repeat it. */
  readonly idempotent?: boolean;
  /** The most that its calls can do; default `commands`. The option `ask` depends on it. */
  readonly effects?: ToolEffects;
  /** Acts only in the session's sandbox, so that an approval question can show what is reachable. */
  readonly sandboxed?: boolean;
  /**
   * Not trusted, such as a tool of an MCP server: each call needs approval, unless `ask: "never"` is set explicitly.
   */
  readonly untrusted?: boolean;
  /** The MCP server that offers it. Requests name such tools after all others, by server and name: servers list them in any order. */
  readonly server?: string;
  /** Whether a call needs approval, regardless of the option `ask`. */
  needsApproval?(args: unknown): boolean | Promise<boolean>;
  readonly timeoutMs?: number;
}

/** A tool result as content parts (images, for example) instead of text. */
export interface ToolContent {
  readonly content: Content;
  readonly isError?: boolean;
}

/** The parameters of a tool without any. */
export const NO_PARAMETERS: JsonObject = Object.freeze({ type: "object", properties: {}, additionalProperties: false });
