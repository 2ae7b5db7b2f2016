import type { ToolCall, ToolMessage } from "../../session/message.ts";
import { parseArguments } from "./parse-arguments.ts";
import { isThenable } from "../is-thenable.ts";
import type { CheckedArguments, Tool } from "./tool.ts";
import { errorMessage, thrownMessage } from "./tool-result.ts";
import { runsWithoutQuestion, type AskPolicy } from "./ask-policy.ts";

/** A call that can run, or the error result of one that cannot. */
export type PreparedCall =
  | {
      readonly call: ToolCall;
      readonly tool: Tool;
      readonly args: unknown;
      /** Runs alone: its tool is exclusive, or it needs approval. */
      readonly alone: boolean;
      readonly key: string | null;
      readonly needsApproval: boolean;
    }
  | { readonly call: ToolCall; readonly failure: ToolMessage };

/** The options for checking calls. */
export interface CallRules {
  readonly tools: ReadonlyMap<string, Tool>;
  /** Which calls need approval. */
  readonly ask: AskPolicy | undefined;
  /** Whether a call was already approved or denied; then the present rules do not matter. */
  readonly isDecided: (call: ToolCall) => boolean;
}

/** Finds a call's tool and checks its arguments; errors become results for the model. */
export function prepareCall(call: ToolCall, rules: CallRules): PreparedCall | Promise<PreparedCall> {
  const { tools } = rules;
  const tool = tools.get(call.name);
  if (tool === undefined) {
    const known = [...tools.keys()].join(", ") || "none";
    return { call, failure: errorMessage(call, "unknown_tool", `There is no tool ${call.name}; there are: ${known}.`) };
  }
  const parsed = parseArguments(call.arguments);
  if (!parsed.ok) return { call, failure: errorMessage(call, "invalid_tool_arguments", parsed.problem) };
  const failed = (error: unknown): PreparedCall => ({ call, failure: thrownMessage(call, error) });
  try {
    const checked = tool.check(parsed.value);
    const prepared = isThenable(checked)
      ? Promise.resolve(checked).then((answer) => prepareChecked(call, tool, answer, rules))
      : prepareChecked(call, tool, checked, rules);
    return prepared instanceof Promise ? prepared.catch(failed) : prepared;
  } catch (error) {
    return failed(error);
  }
}

function prepareChecked(
  call: ToolCall,
  tool: Tool,
  checked: CheckedArguments,
  { ask, isDecided }: CallRules,
): PreparedCall | Promise<PreparedCall> {
  if (!checked.ok) return { call, failure: errorMessage(call, "invalid_tool_arguments", checked.problem) };
  const args = checked.value;
  const prepared = (needsApproval: boolean): PreparedCall => {
    const alone = tool.exclusive === true || needsApproval;
    return { call, tool, args, alone, key: tool.resourceKey?.(args) ?? null, needsApproval };
  };
  if (!runsWithoutQuestion(tool, ask) || isDecided(call)) return prepared(true);
  const asked: unknown = tool.needsApproval?.(args);
  // Any truthy value means that approval is needed: a call must not run because of a malformed answer.
  return isThenable(asked)
    ? Promise.resolve(asked).then((answer) => prepared(Boolean(answer)))
    : prepared(Boolean(asked));
}

/** The properties of a call that determine when it may start. */
export interface Turn {
  readonly alone: boolean;
  readonly key: string | null;
}

/**
 * Runs calls concurrently, except that calls with equal keys run in order, and a call that runs alone waits for all
 * before it and delays all after it. A call waits only for earlier ones, so deadlocks are impossible.
 */
export function scheduleCalls<T>(turns: readonly Turn[], run: (index: number) => Promise<T>): Promise<T>[] {
  const calls: Promise<T>[] = [];
  const lastOf = new Map<string, Promise<T>>();
  let barrier: Promise<T> | null = null;
  for (const [index, { alone, key }] of turns.entries()) {
    const sameKey = key === null ? undefined : lastOf.get(key);
    const before: Promise<T>[] = alone ? [...calls] : [barrier ?? [], sameKey ?? []].flat();
    const call: Promise<T> = before.length === 0 ? run(index) : Promise.all(before).then(() => run(index));
    // The calls are awaited in order; a later one may fail first.
    if (index > 0) call.catch(() => {});
    calls.push(call);
    if (key !== null) lastOf.set(key, call);
    if (alone) barrier = call;
  }
  return calls;
}

/** Which calls start immediately. */
export function startsAtOnce(turns: readonly Turn[]): boolean[] {
  const seen = new Set<string>();
  let blocked = false;
  return turns.map(({ alone, key }, index) => {
    const free = !blocked && (alone ? index === 0 : key === null || !seen.has(key));
    if (key !== null) seen.add(key);
    blocked ||= alone;
    return free;
  });
}
