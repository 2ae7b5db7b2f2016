import type { EntryDraft } from "../../session/log/entry.ts";
import type { ToolCall, ToolMessage } from "../../session/message.ts";
import { copyJson, type JsonValue } from "../../internal/json.ts";
import { isThenable } from "../is-thenable.ts";
import type { LoopExecutor } from "../model/loop-executor.ts";
import { parseArguments } from "./parse-arguments.ts";
import { type AskedBefore, digestOfCall, type ResumeState } from "../persist/resume-state.ts";
import type { RunApprovals } from "../run-approvals.ts";
import type { RunLog } from "../persist/run-log.ts";
import type { Tool, ToolContext } from "./tool.ts";
import { type PreparedCall, prepareCall, scheduleCalls, startsAtOnce } from "./tool-calls.ts";
import { errorMessage, resultMessage, thrownMessage } from "./tool-result.ts";
import { effectsOf, type AskPolicy } from "./ask-policy.ts";
import { untilAborted } from "../follow-abort.ts";

type Runnable = Extract<PreparedCall, { tool: Tool }>;

/** The parts of a run that a dispatch uses. */
export interface DispatchHost {
  readonly log: RunLog;
  readonly approvals: RunApprovals;
  readonly tools: ReadonlyMap<string, Tool>;
  /** Which calls need approval. */
  readonly ask: AskPolicy | undefined;
  readonly executor: LoopExecutor | null;
  /** Runs code of a tool or a handler and detects if it waits for its own run. */
  readonly inside: <T>(work: () => T, code?: object) => T;
  /** Wraps the execution of a tool, for telemetry. */
  readonly observe: (call: ToolCall, work: () => Promise<ToolMessage>) => Promise<ToolMessage>;
}

/** Runs the tool calls of one answer. */
export class ToolDispatch {
  readonly #host: DispatchHost;
  readonly #prepared: readonly PreparedCall[];
  readonly #answer: CalledAnswer;
  /** Calls whose effect is already recorded. */
  readonly #recorded = new Set<ToolCall>();
  /** The ids of the questions about calls. */
  readonly #questions = new Map<ToolCall, string>();

  private constructor(host: DispatchHost, prepared: readonly PreparedCall[], answer: CalledAnswer) {
    this.#host = host;
    this.#prepared = prepared;
    this.#answer = answer;
  }

  /** Checks the calls without running any. With a resume state, calls that may have run before do not run again. */
  static prepare(
    host: DispatchHost,
    calls: readonly ToolCall[],
    answer: CalledAnswer = { calls },
  ): ToolDispatch | Promise<ToolDispatch> {
    const { tools, ask } = host;
    const rules = { tools, ask, isDecided: (call: ToolCall) => askedBefore(answer, call)?.decision != null };
    const checks = calls.map((call) => host.inside(() => prepareCall(call, rules), tools.get(call.name)));
    const dispatchOf = (prepared: readonly PreparedCall[]): ToolDispatch =>
      new ToolDispatch(
        host,
        prepared.map((call) => interruptedOr(call, answer)),
        answer,
      );
    if (isAllThere(checks)) return dispatchOf(checks);
    return untilAborted(Promise.all(checks), host.log.signal).then(dispatchOf);
  }

  /** The entries to record before the calls that start immediately: that their effects may happen. */
  takeEffects(): EntryDraft[] {
    if (!this.#host.log.kept) return [];
    const starts = startsAtOnce(this.#prepared.map(turnOf));
    return this.#prepared.flatMap((prepared, index) =>
      starts[index] && "tool" in prepared && !prepared.needsApproval ? this.#effectOf(prepared) : [],
    );
  }

  /**
   * Runs the calls and adds their results to the transcript, in call order, each as soon as all earlier ones are added.
   * If the run is stopped, results that are already there are still added.
   */
  async run(): Promise<void> {
    if (this.#prepared.some((prepared) => "tool" in prepared && prepared.needsApproval)) await this.#askForApprovals();
    const finished: (ToolMessage | undefined)[] = [];
    const results = scheduleCalls(this.#prepared.map(turnOf), (index) =>
      this.#answerTo(this.#prepared[index] as PreparedCall, (message) => {
        finished[index] = message;
      }),
    );
    const add = (messages: readonly ToolMessage[]): Promise<void> => this.#host.log.add(messages);
    let added = 0;
    try {
      while (added < results.length) {
        await results[added];
        const messages = finishedFrom(finished, added);
        await add(messages);
        added += messages.length;
      }
    } catch (error) {
      const late = finished.slice(added).filter((message) => message !== undefined);
      // The error that stopped the run takes precedence over a failure to store these.
      if (late.length > 0) await add(late).catch(() => {});
      throw error;
    }
  }

  async #askForApprovals(): Promise<void> {
    const { approvals, executor, log } = this.#host;
    const before = (prepared: PreparedCall) => askedBefore(this.#answer, prepared.call);
    const asking = this.#prepared.filter((prepared) => "tool" in prepared && prepared.needsApproval) as Runnable[];
    let following = asking.filter((prepared) => before(prepared)?.decision == null).length;
    for (const prepared of asking) {
      const { call, tool } = prepared;
      // An executor that runs tools may run them anywhere.
      const known = tool.sandboxed === true && executor?.dispatchTool === undefined;
      const reach = known ? await log.output.sandboxReach() : null;
      if (before(prepared)?.decision == null) following -= 1;
      const asked = {
        callId: call.id,
        name: call.name,
        arguments: argumentsOf(prepared),
        effects: effectsOf(tool),
        reach,
        ...(following === 0 ? {} : { following }),
      };
      const about = { index: positionOf(this.#answer, call), digest: digestOfCall(call) };
      this.#questions.set(call, await approvals.ask(asked, about, before(prepared)));
    }
  }

  async #answerTo(prepared: PreparedCall, onMessage: (message: ToolMessage) => void): Promise<void> {
    const { events, signal, state } = this.#host.log;
    signal.throwIfAborted();
    const { id: callId, name } = prepared.call;
    let message: ToolMessage | null = null;
    if ("failure" in prepared) message = prepared.failure;
    else if (prepared.needsApproval) message = await this.#denial(prepared);
    if (message === null) {
      const runnable = prepared as Runnable;
      events.add({ type: "tool-started", round: state.round, callId, name, arguments: argumentsOf(runnable) });
      message = await this.#host.observe(prepared.call, () => this.#execute(runnable));
    }
    onMessage(message);
  }

  async #denial({ call }: Runnable): Promise<ToolMessage | null> {
    const { approvals, log } = this.#host;
    const decision = await untilAborted(approvals.decisionOn(this.#questions.get(call) as string), log.signal);
    if (decision.approved) return null;
    const { reason, by } = decision;
    const message = errorMessage(call, "denied", reason ?? "The user did not allow this call.");
    if (reason !== null) this.#host.log.setAuthor(message, by);
    return message;
  }

  async #execute(prepared: Runnable): Promise<ToolMessage> {
    const { call, tool, args } = prepared;
    const { log, executor, inside } = this.#host;
    const effects = log.kept ? this.#effectOf(prepared) : [];
    if (effects.length > 0) await log.note(effects);
    const renewing = log.lease?.ensure() ?? null;
    if (renewing !== null) await renewing;
    log.signal.throwIfAborted();
    const timer = tool.timeoutMs === undefined ? null : new Timer(tool.timeoutMs, log.signal);
    const signal = timer?.signal ?? log.signal;
    try {
      const value = inside(() => {
        const context = this.#contextOf(call, signal);
        const returned =
          executor?.dispatchTool === undefined
            ? tool.execute(args, context)
            : executor.dispatchTool(log.output, tool, args, context);
        // Some thenables (query builders, for example) start their work at each `then`, so this one is awaited once.
        return isThenable(returned) ? Promise.resolve(returned) : returned;
      }, tool.execute);
      return resultMessage(call, value instanceof Promise ? await untilAborted(value, signal) : value);
    } catch (error) {
      log.signal.throwIfAborted();
      if (timer?.expired !== true) return thrownMessage(call, error);
      return errorMessage(call, "timeout", `The tool did not finish within ${tool.timeoutMs} ms.`);
    } finally {
      timer?.clear();
    }
  }

  #contextOf(call: ToolCall, signal: AbortSignal): ToolContext {
    const { log } = this.#host;
    const { output, runId } = log;
    return {
      session: output,
      get sandbox() {
        return output.sandbox;
      },
      requireSandbox: () => output.requireSandbox(),
      signal,
      callId: call.id,
      runId,
      leaseToken: log.lease?.token ?? null,
    };
  }

  #effectOf({ call, tool }: Runnable): EntryDraft[] {
    if (tool.idempotent === true || this.#recorded.has(call)) return [];
    this.#recorded.add(call);
    const index = positionOf(this.#answer, call);
    return [{ type: "effect", runId: this.#host.log.runId, callId: call.id, index }];
  }
}

/** The answer that the calls belong to: all its calls, and what an earlier claim recorded about them. */
export interface CalledAnswer {
  readonly calls: readonly ToolCall[];
  readonly resume?: ResumeState;
}

function positionOf({ calls }: CalledAnswer, call: ToolCall): number {
  return calls.indexOf(call);
}

function askedBefore(answer: CalledAnswer, call: ToolCall): AskedBefore | undefined {
  return answer.resume?.approvals.get(positionOf(answer, call));
}

/** Most checks are synchronous; then nothing has to wait. */
function isAllThere(checks: readonly (PreparedCall | Promise<PreparedCall>)[]): checks is readonly PreparedCall[] {
  return !checks.some((check) => check instanceof Promise);
}

/** A call that may have had its effect in an earlier claim gets an error result instead of a second attempt. */
function interruptedOr(prepared: PreparedCall, answer: CalledAnswer): PreparedCall {
  if (answer.resume === undefined || !("tool" in prepared)) return prepared;
  const { call, tool } = prepared;
  if (tool.idempotent === true || !answer.resume.effects.has(positionOf(answer, call))) return prepared;
  const message = "The call was interrupted after it may have had its effect; check before you repeat it.";
  return { call, failure: errorMessage(call, "interrupted", message) };
}

function turnOf(prepared: PreparedCall): { readonly alone: boolean; readonly key: string | null } {
  return "tool" in prepared ? prepared : { alone: false, key: null };
}

/** The arguments of a call for an event; a schema may have converted them to something that is not JSON. */
function argumentsOf({ call, args }: Runnable): JsonValue {
  try {
    return copyJson(args);
  } catch {
    const given = parseArguments(call.arguments);
    return given.ok ? (given.value as JsonValue) : null;
  }
}

/** The results from an index on that are complete without a gap. */
function finishedFrom(finished: readonly (ToolMessage | undefined)[], from: number): ToolMessage[] {
  const messages: ToolMessage[] = [];
  for (let index = from; finished[index] !== undefined; index++) messages.push(finished[index] as ToolMessage);
  return messages;
}

/** A signal that also aborts after a time limit. */
class Timer {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal;
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #forward = (): void => this.#controller.abort(this.#parent.reason);
  expired = false;

  constructor(timeoutMs: number, parent: AbortSignal) {
    this.#parent = parent;
    this.#timer = setTimeout(() => {
      this.expired = true;
      this.#controller.abort(new Error(`The tool did not finish within ${timeoutMs} ms.`));
    }, timeoutMs);
    parent.addEventListener("abort", this.#forward, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#parent.removeEventListener("abort", this.#forward);
  }
}
