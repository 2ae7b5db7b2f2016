import type { JsonValue } from "../internal/json.ts";
import type { AssistantMessage, Content, ToolCall } from "../session/message.ts";
import type { RunError } from "../session/log/run-event.ts";
import type { RunEvent } from "./run-event.ts";
import type { Approval } from "../session/log/run-event.ts";
import { SaidOnce, type SaidPiece } from "./said-once.ts";

/** A call of an answer, as far as it is known what became of it. */
export interface ToldCall {
  readonly id: string;
  readonly name: string;
  readonly input: unknown;
  /** What is asked about it. */
  readonly question?: string | undefined;
  readonly started?: boolean;
  readonly result?: { readonly content: Content | null; readonly isError?: boolean } | undefined;
  /** A run inside of a tool makes it. */
  readonly inner?: boolean;
}

/** What a front end is told of an answer. A step is a turn of the model, with its calls. */
export type AnswerFact =
  | { readonly type: "step-began"; readonly round: number }
  | ({ readonly type: "words" } & SaidPiece)
  /** What was said in the step is void, and is taken back: it begins once more. */
  | { readonly type: "step-void" }
  | { readonly type: "answer-whole"; readonly message: AssistantMessage }
  /** Something has become of a call. */
  | { readonly type: "call"; readonly call: ToldCall }
  | { readonly type: "finished"; readonly truncated: boolean; readonly output: JsonValue | undefined }
  | { readonly type: "cancelled" | "failed"; readonly error: RunError };

/** What a teller knows of its reader. */
export interface AnswerReader {
  /** Questions that the reader has answered just now. */
  readonly answered?: readonly string[];
  /** Whether the reader can take back what was said in a step. */
  readonly takesBack?: boolean;
}

/** What the events of a run come to, for a reader of its answer: every word once, and what becomes of every call. */
export class AnswerTeller {
  readonly #reader: AnswerReader;
  #facts: AnswerFact[] = [];
  #said = new SaidOnce();
  #round = 0;
  /** Whether the answer of the step is under way: in a log it is whole before its calls run, in a process after. */
  #inStep = false;
  #calls = new Map<string, ToldCall>();
  /** What runs inside of tools ask: of their questions the log does not say the end. */
  readonly #inner = new Map<string, Approval>();
  /** How many questions follow at once. */
  #following = 0;

  constructor(reader: AnswerReader = {}) {
    this.#reader = reader;
  }

  /** The calls of the latest step, in their order. */
  get calls(): Iterable<ToldCall> {
    return this.#calls.values();
  }

  /** What an event adds to the answer. */
  take(event: RunEvent): readonly AnswerFact[] {
    this.#facts = [];
    const isAnew = event.type === "run-started" || event.type === "model-retry";
    if (isAnew && this.#inStep && this.#reader.takesBack === true) this.#takeBack();
    for (const piece of this.#said.take(event)) {
      this.#step();
      this.#facts.push({ type: "words", ...piece });
    }
    this.#tell(event);
    return this.#facts;
  }

  /**
   * What a person has to answer before anything follows; nothing while something does. `own` is what the run asks and
   * nobody has answered: the calls before the first of those are done by then.
   */
  waitsFor<Question extends { readonly question: string; readonly callId: string }>(
    own: readonly Question[],
  ): readonly (Question | Approval)[] {
    const next = [...this.#calls.values()].find(({ result }) => result === undefined);
    const waits = this.#following === 0 && own.some(({ callId }) => callId === next?.id);
    if (!waits && this.#inner.size === 0) return [];
    return [...new Map([...own, ...this.#inner.values()].map((asked) => [asked.question, asked])).values()];
  }

  #tell(event: RunEvent): void {
    switch (event.type) {
      case "round-finished":
        this.#whole(event.message);
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
        this.#facts.push({ type: "finished", truncated: event.truncated, output: event.output });
        break;
      case "run-failed":
        this.#facts.push({ type: event.error.code === "ABORTED" ? "cancelled" : "failed", error: event.error });
        break;
      default:
    }
  }

  #step(): void {
    if (this.#inStep) return;
    this.#inStep = true;
    this.#calls = new Map();
    this.#round += 1;
    this.#facts.push({ type: "step-began", round: this.#round });
  }

  #takeBack(): void {
    this.#said = new SaidOnce();
    this.#inStep = false;
    this.#round -= 1;
    this.#facts.push({ type: "step-void" });
  }

  #whole(message: AssistantMessage): void {
    this.#step();
    this.#inStep = false;
    const known = this.#calls;
    this.#calls = new Map((message.toolCalls ?? []).map((call) => [call.id, known.get(call.id) ?? toldCall(call)]));
    this.#facts.push({ type: "answer-whole", message });
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

  /** A call that the last step, which is whole, does not have open is one of the next. */
  #change(call: ToldCall, change: Partial<ToldCall>): void {
    let known = this.#calls.get(call.id);
    if (known === undefined || known.result !== undefined) {
      this.#step();
      known = call;
    }
    const changed = { ...known, ...change };
    this.#calls.set(call.id, changed);
    this.#facts.push({ type: "call", call: changed });
  }
}

/** A call that a model has asked for. Its input is what its arguments say, or their text where that is no JSON. */
export function toldCall({ id, name, arguments: text }: ToolCall, question?: string): ToldCall {
  return { id, name, input: text === "" ? {} : (jsonIn(text) ?? text), question };
}

/** What a text says in JSON; undefined where it is none. */
export function jsonIn(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}
