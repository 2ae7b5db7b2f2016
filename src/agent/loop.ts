import { isCutShort } from "../session/log/run-fold.ts";
import { withoutStop } from "../internal/trim-text.ts";
import { defined } from "../internal/defined.ts";
import { invalidOption } from "../session/check-arguments.ts";
import { REMINDER_TYPE, reminderContent } from "../session/context/reminder.ts";
import { BudgetExceededError, SessionCapacityError, SessionError, show } from "../session/errors.ts";
import type { EntryDraft } from "../session/log/entry.ts";
import { type AssistantMessage, type Message, textOf, type ToolCall } from "../session/message.ts";
import type { Session } from "../session/value/session.ts";
import type { BudgetWatch } from "./budget-watch.ts";
import { askModel, parametersOf } from "./model/ask-model.ts";
import type { PartialReply } from "./model/collect-reply.ts";
import type { ContextRoom, NextRequest } from "./context/context-room.ts";
import { type ContextTransform, questionOf, transformContext } from "./context/context-transform.ts";
import type { LoopContext } from "./context/loop-context.ts";
import type { ResultShortener } from "./context/result-shortener.ts";
import { type LoopOptions, MAX_TOOL_ROUNDS_DEFAULT } from "./loop-options.ts";
import { ModelError } from "./model/model-error.ts";
import type { ModelRequest } from "./model/model.ts";
import { checkWhole } from "./model/read-reply.ts";
import { type GivenOutput, isAnswer, lastAnswerIn, RunOutput } from "./output/run-output.ts";
import type { ResumeState } from "./persist/resume-state.ts";
import type { RunInputs } from "./run-inputs.ts";
import type { RunSpending } from "./run-spending.ts";
import type { RunLog } from "./persist/run-log.ts";
import type { SentSetup } from "./persist/run-setup.ts";
import type { RunTelemetry } from "./telemetry.ts";
import { type DispatchHost, ToolDispatch } from "./tools/tool-dispatch.ts";
import { errorMessage, resultMessage, type ToolFailure } from "./tools/tool-result.ts";
import { untilAborted } from "./follow-abort.ts";

/** The parts of a loop. */
export interface LoopParts {
  readonly options: LoopOptions;
  /** The setup of the requests: everything but their messages. */
  readonly setup: SentSetup;
  readonly host: DispatchHost;
  readonly inputs: RunInputs;
  readonly context: LoopContext;
  readonly room: ContextRoom;
  readonly shortener: ResultShortener;
  readonly budget: BudgetWatch | null;
  readonly spending: RunSpending | null;
  readonly telemetry: RunTelemetry | null;
}

/** One run of a session with an agent: asks the model, runs tools, and repeats until the model stops. */
export class Loop {
  readonly #parts: LoopParts;
  readonly #log: RunLog;
  /** The message that the run answers, for transforms that need it. */
  readonly #question: Message | null;
  readonly #parameters: ReturnType<typeof parametersOf>;
  /** Whether the run has sent a request or answered a call. */
  #begun = false;
  #partial: PartialReply | null = null;
  /** When the run received its last answer; null before the first. */
  #answeredAt: number | null = null;
  /** How many times earlier messages had been changed by then. */
  #changesAnswered = 0;
  /** The structured output that the run must produce, if one was requested. */
  readonly #output: RunOutput | null;
  #given: GivenOutput | null = null;
  /** Whether the model was told that its value is invalid. */
  #again = false;

  constructor(parts: LoopParts) {
    this.#parts = parts;
    const { output } = parts.options;
    this.#output = output === undefined ? null : new RunOutput(output, parts.options, parts.setup.output);
    this.#log = parts.host.log;
    this.#log.onRow = (row) => parts.context.push(row);
    const { providerOptions } = parts.options;
    this.#parameters = parametersOf({ ...parts.setup, ...defined({ providerOptions }) });
    this.#question = transformsOf(parts).length === 0 ? null : questionOf(this.#log.output.transcript);
  }

  /** The value that the model gave last, if structured output was requested. */
  get given(): GivenOutput | null {
    return this.#given;
  }

  /**
   * Performs the rounds. Returns whether the run was cut short by its round limit, its budget, or the turn limit of its
   * session.
   *
   * @throws {SessionError} `OUTPUT_INVALID` if the model gave no valid structured output.
   */
  async run(resume: ResumeState | null): Promise<boolean> {
    await this.#settleOpenCalls(resume);
    if (this.#given !== null) return false;
    // The lineage may already have spent the whole budget.
    if (this.#budgetStops()) return this.#end(true);
    // The process died after the last answer: asking again would pay for another one.
    if (resume?.answered === true && (await this.#accepts(lastAnswerIn(this.#log.output.transcript)))) return false;
    // An earlier claim of the run may have used up its rounds, and have stopped before the results of the last one.
    const { answer } = this.#log.state;
    if (answer !== null && answer.calls.length > 0 && this.#isOutOfRounds()) return this.#end(true);
    return this.#end(await this.#runRounds());
  }

  /** Answers input that was appended since. A run that was cut short only records it, for the next run to answer. */
  async goOn(truncated: boolean): Promise<boolean> {
    await this.#addMessages(await this.#parts.inputs.takeAll());
    return this.#end(truncated || this.#budgetStops() || (await this.#runRounds()));
  }

  #end(truncated: boolean): boolean {
    if (truncated && this.#output !== null && this.#given === null) throw this.#invalid("it was cut short before that");
    return truncated;
  }

  async #runRounds(): Promise<boolean> {
    for (;;) {
      this.#log.signal.throwIfAborted();
      await this.#addMessages(this.#parts.inputs.take("steer"));
      if (!this.#hasRoomFor(1)) return true;
      const round = await this.#runRound().catch((error) => {
        // A run that has sent no request has no result to return.
        if (error instanceof BudgetExceededError && this.#log.state.round > 0) return null;
        throw error;
      });
      if (round === null) return true;
      const { message, calls, stopped } = round;
      const ends = calls === 0 ? await this.#accepts(textOf(message.content)) : this.#given !== null;
      if (ends || stopped) return !ends;
      // The model was told that its answer lacks the structured output.
      if (calls === 0) continue;
      if (this.#isOutOfRounds()) return true;
    }
  }

  /** Whether the run has had all of its rounds with calls, over all of its claims. Warns if it has. */
  #isOutOfRounds(): boolean {
    const { maxToolRounds = MAX_TOOL_ROUNDS_DEFAULT } = this.#parts.options;
    if (this.#log.state.toolRounds < maxToolRounds) return false;
    process.emitWarning(
      `Run ${this.#log.output.id} was cut short after ${maxToolRounds} rounds with tool calls; raise maxToolRounds to let it continue.`,
    );
    return true;
  }

  /** Records the partial answer if the run was stopped during an answer. */
  async keepPartialAnswer(): Promise<void> {
    const text = this.#partial?.text ?? "";
    if (text.trim() === "") return;
    const { model, agentName: agent } = this.#parts.options;
    const author = defined({ provider: model?.provider, model: model?.id, agent });
    await this.#log.add([{ role: "assistant", content: text, ...author, stopReason: "aborted" }]);
  }

  async #runRound(): Promise<{ message: AssistantMessage; calls: number; stopped: boolean }> {
    this.#begun = true;
    this.#given = null;
    const editing = this.#takeEdits();
    if (editing !== null) await editing;
    const shortening = this.#parts.shortener.shorten();
    if (shortening !== null) {
      await shortening;
      await this.#takeEdits();
    }
    const making = this.#parts.room.makeBefore(this.#next);
    if (making !== null) await making;
    const reminder = this.#newReminder();
    if (reminder !== null) await this.#log.note([reminder]);
    const message = await this.#ask();
    this.#parts.shortener.answered();
    this.#answeredAt = Date.now();
    this.#changesAnswered = this.#parts.context.changes;
    checkWhole(message, this.#parts.options.model);
    this.#partial = null;
    const calls = callsOf(message);
    let dispatch: ToolDispatch | null = null;
    try {
      const run = this.#withoutAnswers(calls);
      const prepared = run.length === 0 ? null : ToolDispatch.prepare(this.#parts.host, run, { calls });
      dispatch = prepared instanceof Promise ? await prepared : prepared;
    } finally {
      // The answer is paid for, so it is kept even if the run is stopped while its calls are checked.
      const { usage, cost } = message;
      if (usage !== undefined) this.#log.events.add({ type: "usage", round: this.#round, usage, ...defined({ cost }) });
      await this.#log.add([message], dispatch?.takeEffects());
    }
    const why = this.#budgetStops() ? OVER_BUDGET : this.#hasRoomFor(calls.length) ? null : NO_ROOM;
    if (why !== null) await this.#answerCalls(this.#withoutAnswers(calls), () => why);
    else if (dispatch !== null) await dispatch.run();
    await this.#takeAnswers(calls);
    return { message, calls: calls.length, stopped: why !== null };
  }

  /** The agent's reminder, if it has one that differs from the last one in the context. */
  #newReminder(): EntryDraft | null {
    const { reminders } = this.#parts.options;
    const text: unknown = reminders === undefined ? null : this.#parts.host.inside(() => reminders());
    if (text === null || text === "") return null;
    if (typeof text !== "string")
      throw invalidOption(`reminders returned ${show(text)}; it must return a text or null.`);
    const content = reminderContent(text);
    if (this.#parts.context.lastReminder === content) return null;
    return { type: "custom_message", customType: REMINDER_TYPE, content, display: false };
  }

  #takeEdits(): Promise<void> | null {
    const edited = this.#log.takeEdits();
    return edited === null ? null : edited.then((transcript) => this.#parts.context.reset(transcript));
  }

  /** The round, passed to every part of the next answer. */
  get #round(): number {
    return this.#log.state.round + 1;
  }

  #ask(): Promise<AssistantMessage> {
    this.#log.events.add({ type: "round-started", round: this.#round });
    return this.#complete().catch(async (error) => {
      if (!(error instanceof ModelError) || error.kind !== "context_overflow") throw error;
      await this.#parts.room.makeAfter(error);
      return this.#complete();
    });
  }

  /** The next request, to which the request for a summary is added. */
  get #next(): NextRequest {
    return {
      answeredAt: this.#answeredAt,
      request: () => {
        const { context } = this.#parts;
        // A transform prepares the messages for an answer, not for a summary.
        if (context.changes !== this.#changesAnswered || transformsOf(this.#parts).length > 0) return null;
        const request = this.#request(context.messages());
        const isFree = [undefined, "auto", "none"].includes(request.toolChoice as string | undefined);
        return isFree && this.#output === null ? request : null;
      },
    };
  }

  #complete(): Promise<AssistantMessage> {
    const transforms = transformsOf(this.#parts);
    const messages = this.#parts.context.messages();
    if (transforms.length === 0) return this.#answerTo(this.#request(messages));
    return this.#transform(messages(), transforms).then((made) => this.#answerTo(this.#request(made), messages()));
  }

  #answerTo(request: ModelRequest, said?: readonly Message[]): Promise<AssistantMessage> {
    const { options, telemetry, spending, context } = this.#parts;
    const onPartial = (partial: PartialReply | null): void => {
      this.#partial = partial;
    };
    // Transforms may add blobs.
    const hasBlobs = said === undefined ? context.refersToBlobs : undefined;
    const asking = {
      options,
      log: this.#log,
      telemetry,
      round: this.#round,
      onPartial,
      ...defined({ said, hasBlobs }),
    };
    const ask = (): Promise<AssistantMessage> => askModel(request, asking);
    if (spending === null) return ask();
    const { model, maxOutputTokens } = options;
    return spending.ask({ model, inputTokens: context.tokens, maxOutputTokens }, ask);
  }

  async #transform(messages: readonly Message[], transforms: readonly ContextTransform[]): Promise<Messages> {
    const { output, signal } = this.#log;
    const info = { sessionId: output.id, round: this.#round, question: this.#question, signal };
    const work = this.#parts.host.inside(() => transformContext(messages, transforms, info));
    const made = await untilAborted(work, signal);
    return () => made;
  }

  #request(messages: Messages): ModelRequest {
    const { toolChoice, tools: schemas = [] } = this.#parts.setup;
    // Only the first round: a choice that forces a call in every round would never let the run end.
    const forced = toolChoice !== "auto" && toolChoice !== "none";
    const chosen = forced && this.#round > 1 ? undefined : toolChoice;
    return {
      get messages() {
        return messages();
      },
      ...this.#parameters,
      ...defined({ cacheKey: this.#log.cacheKey }),
      ...(this.#output === null
        ? { ...(schemas.length > 0 && { tools: schemas }), ...defined({ toolChoice: chosen }) }
        : this.#output.request(schemas, chosen, { again: this.#again })),
    };
  }

  /** The calls for tools; the loop itself answers calls that give the structured output. */
  #withoutAnswers(calls: readonly ToolCall[]): readonly ToolCall[] {
    return this.#output === null ? calls : calls.filter((call) => !isAnswer(call));
  }

  /** Whether an answer without calls ends the run. If it lacks the structured output, the model is told. */
  async #accepts(text: string): Promise<boolean> {
    const output = this.#output;
    if (output === null) return true;
    const reading = await untilAborted(output.read(text), this.#log.signal);
    if ("given" in reading) {
      this.#given = reading.given;
      return true;
    }
    if (output.isExhausted(this.#log.output.transcript)) throw this.#invalid(reading.problem);
    this.#again = true;
    await this.#addMessages([output.again(reading.problem)]);
    return false;
  }

  /** Answers the calls that give the structured output. */
  async #takeAnswers(calls: readonly ToolCall[]): Promise<void> {
    const output = this.#output;
    if (output === null) return;
    const { signal } = this.#log;
    for (const call of calls.filter(isAnswer)) {
      const exhausted = output.isExhausted(this.#log.output.transcript);
      const reading = await untilAborted(output.read(call.arguments), signal);
      const message =
        "given" in reading
          ? resultMessage(call, "The answer was accepted.")
          : errorMessage(call, "invalid_tool_arguments", reading.problem);
      await this.#addMessages([message]);
      if ("given" in reading) this.#given = reading.given;
      else if (exhausted) throw this.#invalid(reading.problem);
      else this.#again = true;
    }
  }

  #invalid(problem: string): SessionError {
    const why = withoutStop(problem);
    return new SessionError("OUTPUT_INVALID", `Run ${this.#log.runId} gave no value that fits its output: ${why}.`);
  }

  #budgetStops(): boolean {
    return this.#parts.budget?.stops(this.#log.output) === true;
  }

  /** Answers the calls that an interrupted run left open, so that the next request is complete. */
  async #settleOpenCalls(resume: ResumeState | null): Promise<void> {
    const { calls, open } = openCalls(this.#log.output, { besideOthers: resume !== null });
    if (open.length === 0) return;
    this.#begun = true;
    // The state of these calls is unknown: they may have run or still be running (such as an agent that one of them
    // started), or an imported file only records that they were requested.
    if (resume === null || resume.inherited) return this.#answerCalls(open, () => UNKNOWN);
    if (!this.#hasRoomFor(open.length)) {
      return this.#answerCalls(open, (call) => (resume.effects.has(calls.indexOf(call)) ? UNKNOWN : NO_ROOM));
    }
    const run = this.#withoutAnswers(open);
    const dispatch = await ToolDispatch.prepare(this.#parts.host, run, { calls, resume });
    await this.#log.note(dispatch.takeEffects());
    await dispatch.run();
    await this.#takeAnswers(open);
  }

  async #answerCalls(calls: readonly ToolCall[], why: (call: ToolCall) => NotRun): Promise<void> {
    await this.#addMessages(calls.map((call) => errorMessage(call, ...why(call))));
  }

  /** Whether the session can take this number of further turns. */
  #hasRoomFor(turns: number): boolean {
    const { room } = this.#log;
    if (room === null || room.left >= turns) return true;
    // A run that has not sent a request yet has no result to return.
    if (!this.#begun) throw new SessionCapacityError("turns in a session", room.limit);
    return false;
  }

  async #addMessages(messages: readonly Message[]): Promise<void> {
    if (messages.length > 0) await this.#log.add(messages);
  }
}

/** Why a call was not run, as reported to the model. */
type NotRun = readonly [kind: ToolFailure, message: string];

const UNKNOWN: NotRun = ["interrupted", "The call has no result here; it may have run. Check before you repeat it."];
const OVER_BUDGET: NotRun = ["interrupted", "The run stopped before this call because its budget was reached."];
const NO_ROOM: NotRun = [
  "no_room",
  "The session has no room for the result of this call, which was therefore not run.",
];

type Messages = () => readonly Message[];

function transformsOf({ options }: LoopParts): readonly ContextTransform[] {
  return options.context ?? [];
}

/** The calls to run. The calls of an answer that was cut off may be incomplete. */
function callsOf(message: AssistantMessage): readonly ToolCall[] {
  return isCutShort(message) ? [] : (message.toolCalls ?? []);
}

/**
 * The calls of the last answer, and those without a result; with `besideOthers`, even if other input follows the
 * answer.
 */
export function openCalls(session: Session, { besideOthers }: { readonly besideOthers: boolean }): OpenCalls {
  const answered = new Set<string>();
  for (let index = session.transcript.length - 1; index >= 0; index--) {
    const message = session.transcript.at(index)?.message as Message;
    if (message.role === "tool") answered.add(message.toolCallId);
    else if (message.role === "assistant") {
      const calls = callsOf(message);
      return { calls, open: calls.filter((call) => !answered.has(call.id)) };
    } else if (!besideOthers) return NO_CALLS;
  }
  return NO_CALLS;
}

interface OpenCalls {
  readonly calls: readonly ToolCall[];
  readonly open: readonly ToolCall[];
}

const NO_CALLS: OpenCalls = { calls: [], open: [] };
