import type { UIMessageChunk } from "./ai-sdk.ts";
import type { Approval, RunEvent } from "../../agent/run-event.ts";
import type { AssistantMessage, ToolMessage } from "../../session/message.ts";
import { inputOf, outcomeOf, partsOf, wholeText } from "./ui-parts.ts";

type Spoken = "text" | "thinking";
type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { readonly type: Type }>;

const CHUNK_NAME = { text: "text", thinking: "reasoning" } as const;

/** What was said in a round: what a reader has of it, and what the present try of the model has come to. */
interface Said {
  written: string;
  tried: string;
}

/** A call of the present round, as far as a reader knows of it. */
interface OpenCall {
  readonly name: string;
  readonly input: unknown;
  shown: boolean;
}

/**
 * Writes the events of a run as the chunks of one message of the AI SDK.
 *
 * - What was streamed cannot be taken back there. After a retry or a takeover it therefore writes on only where the new
 *   words begin with those that were written; else the whole answer follows in a part of its own.
 * - What was missed of the stream is written when the answer is whole.
 * - While a call waits for approval, those after it that need none are shown once they are done, so that a front end sees
 *   a round whose calls all have a result or wait for a person's word.
 */
export class AnswerWriter {
  readonly #messageId: string;
  #chunks: UIMessageChunk[] = [];
  #parts = 0;
  #open: { readonly kind: Spoken; readonly id: string } | null = null;
  #inStep = false;
  #said: Record<Spoken, Said> = nothingSaid();
  /** Some of what was said in this round was voided or missed: pieces cannot be written as they come. */
  #astray = false;
  #missed = false;
  /** Whether the present round's answer is whole: in a log that is before its calls run, in a process after. */
  #whole = false;
  /** The calls of the round that have no result, and those that had one before the answer was whole. */
  readonly #calls = new Map<string, OpenCall>();
  readonly #settledEarly = new Set<string>();
  readonly #asked = new Set<string>();
  /** Calls inside of tools that wait for approval. */
  readonly #inner = new Set<string>();
  /** Questions that are still to come in what the reader has already. */
  readonly #known: Set<string>;
  #ended = false;

  /** What was told up to the last of the questions `after` is left out: who answers them has it. */
  constructor(messageId: string, after: readonly string[] = []) {
    this.#messageId = messageId;
    this.#known = new Set(after);
  }

  /** Whether the run has ended, or waits with nothing else to tell. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Whether nothing follows before one of these calls has a person's word. */
  waitsFor(callIds: readonly string[]): boolean {
    const [next] = this.#calls.keys();
    if (this.#known.size > 0) return false;
    return this.#inner.size > 0 || (next !== undefined && this.#asked.has(next) && callIds.includes(next));
  }

  /** How the message begins. */
  begin(): UIMessageChunk[] {
    return [{ type: "start", messageId: this.#messageId }];
  }

  /** What an event adds to the message. */
  take(event: RunEvent): UIMessageChunk[] {
    this.#chunks = [];
    const known = this.#known.size > 0;
    this.#tell(event);
    return known && !this.#ended ? [] : this.#chunks;
  }

  /** How the message ends while the run waits for a person's word. */
  pause(): UIMessageChunk[] {
    this.#chunks = [];
    this.#finish({ type: "finish", finishReason: "tool-calls" });
    return this.#chunks;
  }

  #tell(event: RunEvent): void {
    switch (event.type) {
      case "text-delta":
        this.#piece("text", event.text);
        break;
      case "thinking-delta":
        this.#piece("thinking", event.text);
        break;
      case "run-started":
      case "model-retry":
        this.#voidRound();
        break;
      case "events-dropped":
        this.#missed = true;
        break;
      case "round-finished":
        this.#round(event.message);
        break;
      case "tool-started":
        this.#started(event);
        break;
      case "approval-required":
        this.#approval(event.approval);
        break;
      case "approval-settled":
        this.#settled(event.callId);
        break;
      case "tool-finished":
        this.#result(event.callId, event.message);
        break;
      case "run-finished":
        this.#finish({ type: "finish", finishReason: event.truncated ? "length" : "stop" });
        break;
      case "run-failed":
        this.#finish(failureChunk(event));
        break;
      default:
        break;
    }
  }

  #piece(kind: Spoken, text: string): void {
    if (this.#missed) return;
    const said = this.#said[kind];
    said.tried += text;
    if (!this.#astray) this.#write(kind, text);
    else if (said.tried.length > said.written.length && said.tried.startsWith(said.written)) {
      this.#write(kind, said.tried.slice(said.written.length));
    }
  }

  #voidRound(): void {
    for (const said of Object.values(this.#said)) {
      if (said.written !== "") this.#astray = true;
      said.tried = "";
    }
    this.#missed = false;
  }

  #round(message: AssistantMessage): void {
    this.#step();
    const { text, thinking } = this.#said;
    if (text.written === "" && thinking.written === "") {
      for (const part of partsOf(message.content)) {
        if (part.type === "text") this.#write("text", part.text);
        else if (part.type === "reasoning") this.#write("thinking", part.text);
        this.#close();
      }
    } else {
      this.#rest("thinking", wholeText(message, "thinking"));
      this.#rest("text", wholeText(message, "text"));
    }
    this.#close();
    for (const part of partsOf(message.content)) {
      if (part.type === "file") this.#chunks.push({ type: "file", url: part.url, mediaType: part.mediaType });
    }
    for (const call of message.toolCalls ?? []) {
      if (!this.#settledEarly.delete(call.id)) this.#callOf(call.id, call.name, inputOf(call));
    }
    this.#said = nothingSaid();
    this.#astray = false;
    this.#missed = false;
    this.#whole = true;
    if (this.#calls.size === 0) this.#endStep();
  }

  /** What is left of a text when it is whole. */
  #rest(kind: Spoken, whole: string): void {
    const { written } = this.#said[kind];
    const follows = whole.startsWith(written);
    if (!follows) this.#close();
    this.#write(kind, follows ? whole.slice(written.length) : whole);
  }

  #write(kind: Spoken, text: string): void {
    if (text === "") return;
    this.#step();
    const name = CHUNK_NAME[kind];
    if (this.#open?.kind !== kind) {
      this.#close();
      this.#open = { kind, id: `${++this.#parts}` };
      this.#chunks.push({ type: `${name}-start`, id: this.#open.id });
    }
    this.#chunks.push({ type: `${name}-delta`, id: this.#open.id, delta: text });
    this.#said[kind].written += text;
  }

  #close(): void {
    if (this.#open !== null) this.#chunks.push({ type: `${CHUNK_NAME[this.#open.kind]}-end`, id: this.#open.id });
    this.#open = null;
  }

  #step(): void {
    if (this.#inStep && !this.#whole) return;
    this.#endStep();
    this.#calls.clear();
    this.#whole = false;
    this.#inStep = true;
    this.#chunks.push({ type: "start-step" });
  }

  #endStep(): void {
    if (this.#inStep) this.#chunks.push({ type: "finish-step" });
    this.#inStep = false;
  }

  #started({ callId, name, arguments: input }: EventOf<"tool-started">): void {
    const call = this.#callOf(callId, name, input);
    this.#asked.delete(callId);
    if (this.#asked.size === 0) this.#show(callId, call);
  }

  #approval({ callId, name, arguments: input, question, innerRunId }: Approval): void {
    this.#known.delete(question);
    for (const [id, call] of this.#calls) {
      if (id === callId || this.#asked.has(id)) break;
      this.#show(id, call);
    }
    if (innerRunId === undefined) {
      this.#show(callId, this.#callOf(callId, name, input));
      this.#asked.add(callId);
    } else {
      this.#show(callId, { name, input, shown: false });
      this.#inner.add(callId);
    }
    this.#chunks.push({ type: "tool-approval-request", approvalId: question, toolCallId: callId });
  }

  #settled(callId: string): void {
    if (this.#inner.delete(callId))
      this.#chunks.push({ type: "tool-output-available", toolCallId: callId, output: null });
  }

  #result(callId: string, message: ToolMessage): void {
    this.#show(callId, this.#callOf(callId, message.name, {}));
    const outcome = outcomeOf(message);
    if (outcome.state === "output-denied") this.#chunks.push({ type: "tool-output-denied", toolCallId: callId });
    else if (outcome.state === "output-error")
      this.#chunks.push({ type: "tool-output-error", toolCallId: callId, errorText: outcome.errorText });
    else this.#chunks.push({ type: "tool-output-available", toolCallId: callId, output: outcome.output });
    this.#asked.delete(callId);
    this.#calls.delete(callId);
    if (!this.#whole) this.#settledEarly.add(callId);
    else if (this.#calls.size === 0) this.#endStep();
  }

  #callOf(callId: string, name: string, input: unknown): OpenCall {
    const call = this.#calls.get(callId) ?? { name, input, shown: false };
    this.#calls.set(callId, call);
    return call;
  }

  #show(toolCallId: string, call: OpenCall): void {
    if (call.shown) return;
    call.shown = true;
    if (!this.#inStep) this.#step();
    this.#close();
    this.#chunks.push({ type: "tool-input-available", toolCallId, toolName: call.name, input: call.input });
  }

  #finish(chunk: UIMessageChunk): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#close();
    this.#endStep();
    this.#chunks.push(chunk);
  }
}

function nothingSaid(): Record<Spoken, Said> {
  return { text: { written: "", tried: "" }, thinking: { written: "", tried: "" } };
}

function failureChunk({ error }: EventOf<"run-failed">): UIMessageChunk {
  return error.code === "ABORTED"
    ? { type: "abort", reason: error.message }
    : { type: "error", errorText: error.message };
}
