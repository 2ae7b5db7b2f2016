import type { EntryDraft } from "../session/entry.ts";
import type { ToolCall, ToolMessage } from "../session/message.ts";
import { type Row, rowOf } from "../session/transcript.ts";
import type { LoopExecutor } from "./loop-executor.ts";
import type { ResumeState } from "./resume-state.ts";
import type { RunApprovals } from "./run-approvals.ts";
import type { RunProgress } from "./run-progress.ts";
import type { Tool, ToolContext } from "./tool.ts";
import { type PreparedCall, prepareCall, scheduleCalls, startsAtOnce } from "./tool-calls.ts";
import { errorMessage, resultMessage, thrownMessage } from "./tool-result.ts";
import { untilAborted } from "./until-aborted.ts";

type Runnable = Extract<PreparedCall, { tool: Tool }>;

/** What a dispatch needs of its run. */
export interface DispatchHost {
  readonly progress: RunProgress;
  readonly approvals: RunApprovals;
  readonly tools: ReadonlyMap<string, Tool>;
  readonly executor: LoopExecutor | null;
  /** Runs a tool's code so that it can be told that it waits for its own run. */
  readonly inside: <T>(work: () => T) => T;
  /** Wraps the running of a tool, for telemetry. */
  readonly observe: (call: ToolCall, work: () => Promise<ToolMessage>) => Promise<ToolMessage>;
}

/** Runs the calls of one answer. */
export class ToolDispatch {
  readonly #host: DispatchHost;
  readonly #round: number;
  readonly #prepared: readonly PreparedCall[];
  readonly #resume: ResumeState | null;
  /** Calls whose effect is on record already. */
  readonly #recorded = new Set<string>();

  private constructor(
    host: DispatchHost,
    round: number,
    prepared: readonly PreparedCall[],
    resume: ResumeState | null,
  ) {
    this.#host = host;
    this.#round = round;
    this.#prepared = prepared;
    this.#resume = resume;
  }

  /** Checks the calls; nothing has run yet. With a resume state, calls that may have run before do not run again. */
  static async prepare(
    host: DispatchHost,
    round: number,
    calls: readonly ToolCall[],
    resume: ResumeState | null = null,
  ): Promise<ToolDispatch> {
    const prepared = await Promise.all(calls.map((call) => prepareCall(call, host.tools)));
    return new ToolDispatch(
      host,
      round,
      prepared.map((call) => interruptedOr(call, resume)),
      resume,
    );
  }

  /** What must be on record before the calls that start at once may start: that their effects may happen. */
  takeEffects(): EntryDraft[] {
    if (!this.#host.progress.kept) return [];
    const starts = startsAtOnce(this.#prepared.map(turnOf));
    const drafts = this.#prepared.flatMap((prepared, index) =>
      starts[index] && "tool" in prepared && !prepared.needsApproval ? this.#effectOf(prepared) : [],
    );
    return drafts;
  }

  /** Runs the calls and adds their results to the transcript, in call order, each as soon as those before it are there. */
  async run(onResult: (row: Row) => void): Promise<void> {
    const { approvals } = this.#host;
    for (const prepared of this.#prepared) {
      if (!("tool" in prepared) || !prepared.needsApproval) continue;
      const { call, args } = prepared;
      const earlier = this.#resume?.approvals.get(call.id);
      await approvals.ask({ callId: call.id, name: call.name, arguments: args }, earlier, this.#round);
    }
    const results = scheduleCalls(this.#prepared.map(turnOf), (index) =>
      this.#answer(this.#prepared[index] as PreparedCall),
    );
    for (let index = 0; index < results.length; ) {
      const rows = [rowOf({ message: await (results[index] as Promise<ToolMessage>) })];
      for (index++; index < results.length; index++) {
        const next = await settledNow(results[index] as Promise<ToolMessage>);
        if (next === null) break;
        rows.push(rowOf({ message: next }));
      }
      await this.#host.progress.add(rows);
      for (const row of rows) onResult(row);
    }
  }

  async #answer(prepared: PreparedCall): Promise<ToolMessage> {
    const { events, signal } = this.#host.progress;
    signal.throwIfAborted();
    const { id: callId, name } = prepared.call;
    if ("failure" in prepared) {
      events.add({ type: "tool-finished", round: this.#round, callId, message: prepared.failure });
      return prepared.failure;
    }
    const denied = prepared.needsApproval ? await this.#denial(prepared) : null;
    if (denied === null) events.add({ type: "tool-started", round: this.#round, callId, name });
    const message = denied ?? (await this.#host.observe(prepared.call, () => this.#execute(prepared)));
    events.add({ type: "tool-finished", round: this.#round, callId, message });
    return message;
  }

  async #denial({ call }: Runnable): Promise<ToolMessage | null> {
    const decision = await untilAborted(this.#host.approvals.decisionOn(call.id), this.#host.progress.signal);
    if (decision.approved) return null;
    return errorMessage(call, "denied", decision.reason ?? "The user did not allow this call.");
  }

  async #execute(prepared: Runnable): Promise<ToolMessage> {
    const { call, tool, args } = prepared;
    const { progress, executor, inside } = this.#host;
    if (progress.kept) {
      const effects = this.#effectOf(prepared);
      if (effects.length > 0) await progress.note(effects);
    }
    progress.signal.throwIfAborted();
    const timer = tool.timeoutMs === undefined ? null : new Timer(tool.timeoutMs, progress.signal);
    const signal = timer?.signal ?? progress.signal;
    try {
      const value = inside(() =>
        executor?.dispatchTool === undefined
          ? tool.execute(args, this.#contextOf(call, signal))
          : executor.dispatchTool(progress.output, tool, args),
      );
      return resultMessage(call, isThenable(value) ? await untilAborted(value, signal) : value);
    } catch (error) {
      progress.signal.throwIfAborted();
      if (timer?.expired !== true) return thrownMessage(call, error);
      return errorMessage(call, "timeout", `The tool did not answer within ${tool.timeoutMs} ms.`);
    } finally {
      timer?.clear();
    }
  }

  #contextOf(call: ToolCall, signal: AbortSignal): ToolContext {
    const { output, runId } = this.#host.progress;
    return {
      session: output,
      get sandbox() {
        return output.sandbox;
      },
      requireSandbox: () => output.requireSandbox(),
      signal,
      callId: call.id,
      runId,
    };
  }

  #effectOf({ call, tool }: Runnable): EntryDraft[] {
    if (tool.idempotent === true || this.#recorded.has(call.id)) return [];
    this.#recorded.add(call.id);
    return [{ type: "effect", runId: this.#host.progress.runId, callId: call.id }];
  }
}

/** A call that may have had its effect in an earlier run gets an answer instead of a second try. */
function interruptedOr(prepared: PreparedCall, resume: ResumeState | null): PreparedCall {
  if (resume === null || !("tool" in prepared)) return prepared;
  const { call, tool } = prepared;
  if (tool.idempotent === true || !resume.effects.has(call.id)) return prepared;
  const message = "The call was interrupted after it may have had its effect; check before you repeat it.";
  return { call, failure: errorMessage(call, "interrupted", message) };
}

function turnOf(prepared: PreparedCall): { readonly alone: boolean; readonly key: string | null } {
  return "tool" in prepared ? prepared : { alone: false, key: null };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}

const UNSETTLED = Symbol("unsettled");

/** What a promise has come to already, or null. */
async function settledNow<T>(promise: Promise<T>): Promise<T | null> {
  const first = await Promise.race([promise, Promise.resolve(UNSETTLED)]);
  return first === UNSETTLED ? null : (first as T);
}

/** A signal that also aborts when a time is over. */
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
      this.#controller.abort(new Error(`The tool did not answer within ${timeoutMs} ms.`));
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
