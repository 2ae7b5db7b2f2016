import { SessionError } from "../session/errors.ts";
import type { AssistantMessage, Message, ToolCall } from "../session/message.ts";
import type { HookRunner } from "../session/run-hooks.ts";
import type { Session } from "../session/session.ts";
import { type Row, rowOf } from "../session/transcript.ts";
import type { BudgetWatch } from "./budget-watch.ts";
import { collectReply, type PartialReply } from "./collect-reply.ts";
import { givenSummary, summarizePlan } from "./compact.ts";
import type { LoopContext } from "./loop-context.ts";
import { type LoopOptions, MAX_TOOL_ROUNDS_DEFAULT } from "./loop-options.ts";
import { ModelError } from "./model-error.ts";
import type { Model, ModelReply, ModelRequest, ToolSchema } from "./model.ts";
import type { ResumeState } from "./resume-state.ts";
import { withRetries } from "./retry.ts";
import type { RunInputs } from "./run-inputs.ts";
import type { RunProgress } from "./run-progress.ts";
import { spendingOf } from "./summarize.ts";
import type { RunTelemetry } from "./telemetry.ts";
import { loadTokenizer } from "./tokenizer.ts";
import { type DispatchHost, ToolDispatch } from "./tool-dispatch.ts";
import { errorMessage } from "./tool-result.ts";
import { untilAborted } from "./until-aborted.ts";

/** What a loop runs with. */
export interface LoopParts {
  readonly options: LoopOptions;
  readonly schemas: readonly ToolSchema[];
  readonly host: DispatchHost;
  readonly inputs: RunInputs;
  readonly context: LoopContext;
  readonly budget: BudgetWatch | null;
  readonly hooks: HookRunner;
  readonly telemetry: RunTelemetry | null;
}

/** One pass of a session through an agent: ask, run tools, ask again, until the model stops. */
export class Loop {
  readonly #parts: LoopParts;
  readonly #progress: RunProgress;
  #round = 0;
  #partial: PartialReply | null = null;

  constructor(parts: LoopParts) {
    this.#parts = parts;
    this.#progress = parts.host.progress;
  }

  /** Whether the run was cut short: by its number of rounds, or by its budget. */
  async run(resume: ResumeState | null): Promise<{ readonly truncated: boolean }> {
    const { maxToolRounds = MAX_TOOL_ROUNDS_DEFAULT } = this.#parts.options;
    await this.#settleOpenCalls(resume);
    for (let toolRounds = 0; ; ) {
      this.#progress.signal.throwIfAborted();
      await this.#say(this.#parts.inputs.take("steer"));
      const { message, calls, stopped } = await this.#runRound();
      const events = { type: "round-finished", round: this.#round, message } as const;
      this.#progress.events.add({ ...events, stopReason: message.stopReason ?? "stop" });
      if (stopped) return { truncated: true };
      if (calls > 0) {
        if (++toolRounds >= maxToolRounds) return { truncated: true };
        continue;
      }
      const more = await this.#parts.inputs.takeLast();
      if (more.length === 0) return { truncated: false };
      await this.#say(more);
    }
  }

  /** What the model had said when the run was stopped in the middle of an answer. */
  async keepPartialAnswer(): Promise<void> {
    const text = this.#partial?.text ?? "";
    if (text.trim() === "") return;
    const { model } = this.#parts.options;
    const author = model === undefined ? {} : { provider: model.provider, model: model.id };
    await this.#add([rowOf({ message: { role: "assistant", content: text, ...author, stopReason: "aborted" } })]);
  }

  async #runRound(): Promise<{ message: AssistantMessage; calls: number; stopped: boolean }> {
    this.#round += 1;
    const message = await this.#ask();
    const calls = callsOf(message);
    const dispatch = calls.length === 0 ? null : await ToolDispatch.prepare(this.#parts.host, this.#round, calls);
    await this.#add([rowOf({ message })], dispatch?.takeEffects());
    this.#partial = null;
    this.#progress.spend(message.usage, message.cost);
    if (message.usage !== undefined) {
      const cost = message.cost === undefined ? {} : { cost: message.cost };
      this.#progress.events.add({ type: "usage", round: this.#round, usage: message.usage, ...cost });
    }
    const stopped = this.#parts.budget?.stops(this.#progress.output) === true;
    if (stopped) {
      await this.#declineCalls(calls);
    } else {
      await dispatch?.run((row) => this.#parts.context.push(row));
    }
    return { message, calls: calls.length, stopped };
  }

  async #ask(): Promise<AssistantMessage> {
    const { options, context } = this.#parts;
    const window = options.model?.contextWindow;
    const { compaction } = options;
    if (window !== undefined && compaction !== false && context.isFull(window, settingsFor(window, compaction))) {
      await this.#compact(settingsFor(window, compaction));
    }
    this.#progress.events.add({ type: "round-started", round: this.#round });
    try {
      return await this.#complete();
    } catch (error) {
      if (compaction === false || !isOverflow(error)) throw error;
      // The provider counts differently than we do: keep a third of what we thought was small enough.
      const keepRecentTokens = Math.floor(Math.min(window ?? context.tokens, context.tokens) / 3);
      if (!(await this.#compact({ ...compaction?.settings, keepRecentTokens }))) throw error;
      return this.#complete();
    }
  }

  async #complete(): Promise<AssistantMessage> {
    const { options, telemetry } = this.#parts;
    const { signal, events } = this.#progress;
    const request = this.#request();
    const ask = (): Promise<ModelReply> => untilAborted(this.#askOnce(request), signal);
    const attempt = telemetry === null ? ask : () => telemetry.chat(options.model, request, ask);
    const reply = await withRetries(attempt, options.retry ?? {}, signal, (retry) =>
      events.add({ type: "model-retry", round: this.#round, ...retry }),
    );
    const message = checkReply(reply, options.model);
    return options.agentName === undefined ? message : { ...message, agent: options.agentName };
  }

  #askOnce(request: ModelRequest): Promise<ModelReply> {
    const { model, executor } = this.#parts.options;
    const { signal, events } = this.#progress;
    if (executor !== undefined) return executor.complete(request, { signal });
    return collectReply(
      model as Model,
      request,
      signal,
      (delta) => delta.type !== "finish" && events.add({ ...delta, round: this.#round }),
      (partial) => {
        this.#partial = partial;
      },
    );
  }

  #request(): ModelRequest {
    const { options, schemas, context } = this.#parts;
    const { thinkingLevel, temperature, maxOutputTokens, stop, providerOptions, toolChoice } = options;
    const messages = context.messages();
    // A choice that forces a call would force one in every round, and the run would never end.
    const choice = this.#round > 1 && toolChoice !== "none" ? undefined : toolChoice;
    return {
      get messages() {
        return messages();
      },
      ...(schemas.length === 0 ? {} : { tools: schemas }),
      ...(choice === undefined ? {} : { toolChoice: choice }),
      ...(thinkingLevel === undefined ? {} : { thinkingLevel }),
      ...(temperature === undefined ? {} : { temperature }),
      ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
      ...(stop === undefined ? {} : { stop }),
      ...(providerOptions === undefined ? {} : { providerOptions }),
    };
  }

  /** Makes room in the context; false when there is nothing to make room with. */
  async #compact(settings: NonNullable<Exclude<LoopOptions["compaction"], false>>["settings"]): Promise<boolean> {
    const { options, context, hooks } = this.#parts;
    const { model: own, instructions } = options.compaction === false ? {} : (options.compaction ?? {});
    const model = own ?? options.model;
    const plan = context.plan({ ...settings, tokenizer: settings?.tokenizer ?? (await loadTokenizer()) });
    if (plan === null || model === undefined) return false;
    const { signal, output, events } = this.#progress;
    const given = await notCancelled(hooks.before("beforeCompact", { sessionId: output.id, plan }));
    if (given === "cancelled") return false;
    const wishes = instructions === undefined ? {} : { instructions };
    const write = () => untilAborted(summarizePlan(plan, { model, signal, ...wishes }), signal);
    const summary =
      given === null ? await withRetries(write, options.retry ?? {}, signal, () => {}) : givenSummary(given.summary);
    const details = given?.details ?? plan.details;
    const entry = context.compact(plan, { summary: summary.text, details, ...spendingOf(summary) });
    await this.#progress.note([entry]);
    this.#progress.spend(summary.usage, summary.cost);
    const { id: entryId, firstKeptEntryId, tokensBefore } = entry;
    const told = { entryId, summary: summary.text, firstKeptEntryId, tokensBefore };
    events.add({ type: "compaction", round: this.#round, ...told });
    await hooks.after("compact", {
      sessionId: output.id,
      entry: { ...entry, parentId: null, seq: -1, timestamp: new Date().toISOString() },
    });
    return true;
  }

  /** Answers the calls that an interrupted run left open, so that the next request is whole. */
  async #settleOpenCalls(resume: ResumeState | null): Promise<void> {
    const open = openCalls(this.#progress.output);
    if (open.length === 0) return;
    const dispatch = await ToolDispatch.prepare(this.#parts.host, this.#round, open, resume);
    await this.#progress.note(dispatch.takeEffects());
    await dispatch.run((row) => this.#parts.context.push(row));
  }

  async #declineCalls(calls: readonly ToolCall[]): Promise<void> {
    const message = "The run stopped before this call because its budget was reached.";
    await this.#add(calls.map((call) => rowOf({ message: errorMessage(call, "interrupted", message) })));
  }

  async #say(rows: readonly Row[]): Promise<void> {
    if (rows.length > 0) await this.#add(rows);
  }

  async #add(rows: readonly Row[], facts?: Parameters<RunProgress["add"]>[1]): Promise<void> {
    await this.#progress.add(rows, facts);
    for (const row of rows) this.#parts.context.push(row);
  }
}

/** The calls to run: those of an answer that was cut short may be cut short themselves. */
function callsOf(message: AssistantMessage): readonly ToolCall[] {
  const cut = message.stopReason === "length" || message.stopReason === "content_filter";
  return cut ? [] : (message.toolCalls ?? []);
}

/** The calls at the end of a transcript that have no result. */
function openCalls(session: Session): readonly ToolCall[] {
  const answered = new Set<string>();
  for (let index = session.transcript.length - 1; index >= 0; index--) {
    const message = session.transcript.at(index)?.message as Message;
    if (message.role === "tool") answered.add(message.toolCallId);
    else if (message.role === "assistant") return callsOf(message).filter((call) => !answered.has(call.id));
    else return [];
  }
  return [];
}

function checkReply(reply: ModelReply, model: Model | undefined): AssistantMessage {
  const provider = model?.provider ?? "executor";
  if (reply?.role !== "assistant") {
    throw new ModelError("malformed", `${provider} answered with something that is not an answer.`, { provider });
  }
  if (reply.stopReason === "error") {
    throw new ModelError("other", `${provider} answered with an error.`, { provider, cause: reply });
  }
  if (reply.stopReason === "aborted") throw new SessionError("ABORTED", `${provider} broke its answer off.`);
  const ids = new Set<string>();
  const toolCalls = (reply.toolCalls ?? []).map((call) => {
    let id = call.id;
    // Results are matched by id, so that two calls of one id would get one result.
    for (let n = 2; ids.has(id); n++) id = `${call.id}_${n}`;
    ids.add(id);
    return id === call.id ? call : { ...call, id };
  });
  return toolCalls.length === 0 ? reply : { ...reply, toolCalls };
}

async function notCancelled<T>(asked: Promise<T>): Promise<T | "cancelled"> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof SessionError && error.code === "CANCELLED") return "cancelled";
    throw error;
  }
}

function isOverflow(error: unknown): boolean {
  return error instanceof ModelError && error.kind === "context_overflow";
}

/** The settings of a compaction; in a small window, shares of it instead of the usual amounts. */
function settingsFor(window: number, compaction: Exclude<LoopOptions["compaction"], false>) {
  const share = Math.floor(window / 4);
  return { reserveTokens: Math.min(16_384, share), keepRecentTokens: Math.min(20_000, share), ...compaction?.settings };
}
