import type { JsonValue } from "../internal/json.ts";
import type { AssistantMessage, Content, ToolCall } from "../session/message.ts";
import type { RunError } from "../session/log/run-event.ts";
import type { RunEvent } from "./run-event.ts";
import type { Approval } from "../session/log/run-event.ts";
import { DedupedText, type TextPiece } from "./deduped-text.ts";

/** A call of an answer and its state. */
export interface CallState {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  /** The id of the open question about it. */
  readonly question?: string | undefined;
  readonly started?: boolean;
  readonly result?: { readonly content: Content | null; readonly isError?: boolean } | undefined;
  /** Whether the call is made by a run inside a tool. */
  readonly inner?: boolean;
}

/** A change of the answer that a front end shows. A step is one answer of the model, with its calls. */
export type AnswerChange =
  | { readonly type: "step-started"; readonly round: number }
  | ({ readonly type: "text" } & TextPiece)
  /** The text of the step is discarded: the step starts again. */
  | { readonly type: "step-discarded" }
  | { readonly type: "answer-finished"; readonly message: AssistantMessage }
  /** The state of a call has changed. */
  | { readonly type: "call"; readonly call: CallState }
  | { readonly type: "finished"; readonly truncated: boolean; readonly output: JsonValue | undefined }
  | { readonly type: "cancelled" | "failed"; readonly error: RunError };

/** Options of an `AnswerReducer`. */
export interface AnswerReader {
  /** Ids of questions that the reader has just answered. */
  readonly answered?: readonly string[];
  /** True if the reader can discard the text of a step. */
  readonly canDiscard?: boolean;
}

/** Reduces the events of a run to changes of the answer that a front end shows: its text, each character once, and its calls. */
export class AnswerReducer {
  readonly #reader: AnswerReader;
  #changes: AnswerChange[] = [];
  #text = new DedupedText();
  #round = 0;
  /** True while the step has no finished answer. */
  #inStep = false;
  #calls = new Map<string, CallState>();
  /** Open questions of runs inside tools, by id. The log of this run does not record their answers. */
  readonly #inner = new Map<string, Approval>();
  /** The number of further questions that follow immediately. */
  #following = 0;

  constructor(reader: AnswerReader = {}) {
    this.#reader = reader;
  }

  /** The calls of the latest step, in their order. */
  get calls(): Iterable<CallState> {
    return this.#calls.values();
  }

  /** Returns the changes that an event makes. */
  take(event: RunEvent): readonly AnswerChange[] {
    this.#changes = [];
    const isRestart = event.type === "run-started" || event.type === "model-retry";
    if (isRestart && this.#inStep && this.#reader.canDiscard === true) this.#discardStep();
    for (const piece of this.#text.take(event)) {
      this.#startStep();
      this.#changes.push({ type: "text", ...piece });
    }
    this.#reduce(event);
    return this.#changes;
  }

  /**
   * The open questions, if the run waits for an answer to one of them; empty while the run can go on. `own` has the open
   * questions of the run itself: it waits for the first of them once the calls before it have results.
   */
  waitsFor<Question extends { readonly question: string; readonly callId: string }>(
    own: readonly Question[],
  ): readonly (Question | Approval)[] {
    const next = [...this.#calls.values()].find(({ result }) => result === undefined);
    const waits = this.#following === 0 && own.some(({ callId }) => callId === next?.id);
    if (!waits && this.#inner.size === 0) return [];
    return [...new Map([...own, ...this.#inner.values()].map((asked) => [asked.question, asked])).values()];
  }

  #reduce(event: RunEvent): void {
    switch (event.type) {
      case "round-finished":
        this.#finishAnswer(event.message);
        break;
      case "tool-started":
        this.#change({ id: event.callId, name: event.name, input: event.arguments }, { started: true });
        break;
      case "tool-finished":
        this.#change({ id: event.callId, name: event.message.name, input: {} }, { result: event.message });
        break;
      case "approval-required":
        this.#ask(event.approval);
        break;
      case "approval-settled": {
        const call = this.#calls.get(event.callId);
        this.#inner.delete(event.question);
        if (call?.inner === true) this.#change(call, { result: { content: null } });
        break;
      }
      case "run-parked":
        this.#following = 0;
        break;
      case "run-finished":
        this.#changes.push({ type: "finished", truncated: event.truncated, output: event.output });
        break;
      case "run-failed":
        this.#changes.push({ type: event.error.code === "ABORTED" ? "cancelled" : "failed", error: event.error });
        break;
      default:
    }
  }

  #startStep(): void {
    if (this.#inStep) return;
    this.#inStep = true;
    this.#calls = new Map();
    this.#round += 1;
    this.#changes.push({ type: "step-started", round: this.#round });
  }

  #discardStep(): void {
    this.#text = new DedupedText();
    this.#inStep = false;
    this.#round -= 1;
    this.#changes.push({ type: "step-discarded" });
  }

  #finishAnswer(message: AssistantMessage): void {
    this.#startStep();
    this.#inStep = false;
    const known = this.#calls;
    this.#calls = new Map((message.toolCalls ?? []).map((call) => [call.id, known.get(call.id) ?? callStateOf(call)]));
    this.#changes.push({ type: "answer-finished", message });
  }

  #ask(approval: Approval): void {
    const { callId: id, name, arguments: input, question, innerRunId, following = 0 } = approval;
    this.#following = following;
    if (innerRunId !== undefined) {
      this.#calls.set(id, { id, name, input, inner: true });
      if (this.#reader.answered?.includes(question) !== true) this.#inner.set(question, approval);
    }
    this.#change({ id, name, input }, { question });
  }

  /** A claim that continues an answer emits events of its calls without that answer: such a call starts a step. */
  #change(call: CallState, change: Partial<CallState>): void {
    let known = this.#calls.get(call.id);
    if (known === undefined || known.result !== undefined) {
      this.#startStep();
      known = call;
    }
    const changed = { ...known, ...change };
    this.#calls.set(call.id, changed);
    this.#changes.push({ type: "call", call: changed });
  }
}

/** The state of a call that was just requested. Its input is the value of its arguments, or their text if that is not JSON. */
export function callStateOf({ id, name, arguments: text }: ToolCall, question?: string): CallState {
  return { id, name, input: text === "" ? {} : (jsonIn(text) ?? text), question };
}

/** Parses JSON; returns undefined for any other text. */
export function jsonIn(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
