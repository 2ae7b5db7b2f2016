import type { UIMessageChunk } from "./ai-sdk.ts";
import type { RunEvent } from "../../agent/run-event.ts";
import { SaidOnce, type SaidPiece } from "../../agent/said-once.ts";
import type { AssistantMessage } from "../../session/message.ts";
import { callOf, callParts, partsOf, type UICall, type UICallPart } from "./ui-parts.ts";

type EventOf<Type extends RunEvent["type"]> = Extract<RunEvent, { readonly type: Type }>;

const CHUNK_NAME = { text: "text", thinking: "reasoning" } as const;

/** Writes the events of a run as the chunks of one message of the AI SDK, which shows what `toUIMessages` shows. */
export class AnswerWriter {
  /** What is to be sent. */
  #chunks: UIMessageChunk[];
  /** Questions that are still to come in what the reader has already. */
  readonly #known: Set<string>;
  readonly #said = new SaidOnce();
  #parts = 0;
  #open: { readonly kind: SaidPiece["kind"]; readonly id: string } | null = null;
  #inStep = false;
  /** Whether the answer of the step is whole: in a log that is before its calls run, in a process after. */
  #whole = false;
  #calls = new Map<string, UICall>();
  /** The states of the calls that the reader sees. */
  #states = new Map<string, UICallPart["state"]>();
  /** Calls inside of tools that wait for approval. */
  readonly #inner = new Set<string>();
  /** How many questions follow at once. */
  #following = 0;
  #ended = false;

  /** What was told up to the last of the questions `after` is left out: who answers them has it. */
  constructor(messageId: string, after: readonly string[] = []) {
    this.#chunks = [{ type: "start", messageId }];
    this.#known = new Set(after);
  }

  /** Whether the message has ended: with the run, or where that waits for a person's word. */
  get ended(): boolean {
    return this.#ended;
  }

  /** What events add to the message. It ends where nothing follows before one of the calls that wait has a person's word. */
  take(events: readonly RunEvent[], waiting: readonly { readonly callId: string }[]): UIMessageChunk[] {
    for (const event of events) {
      const before = this.#known.size > 0 ? this.#chunks.length : null;
      for (const piece of this.#said.take(event)) this.#write(piece);
      this.#tell(event);
      if (before !== null && !this.#ended) this.#chunks.length = before;
    }
    if (this.#waitsFor(waiting.map(({ callId }) => callId)))
      this.#finish({ type: "finish", finishReason: "tool-calls" });
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }

  #waitsFor(callIds: readonly string[]): boolean {
    if (this.#known.size > 0 || this.#following > 0) return false;
    const open = [...this.#states].filter(([, state]) => !state.startsWith("output-"));
    const waits = ([id, state]: (typeof open)[number]): boolean =>
      state === "approval-requested" && callIds.includes(id);
    return this.#inner.size > 0 || (open.length > 0 && open.every(waits));
  }

  #tell(event: RunEvent): void {
    switch (event.type) {
      case "round-finished":
        this.#round(event.message);
        break;
      case "tool-started":
        this.#call(event.callId, event.name, event.arguments).started = true;
        this.#showCalls();
        break;
      case "approval-required":
        this.#approval(event);
        break;
      case "approval-settled":
        if (this.#inner.delete(event.callId)) this.#result(event.callId, { name: "", content: null });
        break;
      case "run-parked":
        this.#following = 0;
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

  #round({ content, toolCalls = [] }: AssistantMessage): void {
    if (this.#whole || !this.#inStep) this.#step();
    this.#close();
    for (const part of partsOf(content)) {
      if (part.type === "file") this.#chunks.push({ type: "file", url: part.url, mediaType: part.mediaType });
    }
    // What is asked about them comes before any of them starts, so that they are shown with the first that is heard of one.
    const known = this.#calls;
    this.#calls = new Map(toolCalls.map((call) => [call.id, known.get(call.id) ?? callOf(call)]));
    this.#whole = true;
  }

  #write({ kind, text, begins }: SaidPiece): void {
    if (this.#whole || !this.#inStep) this.#step();
    if (this.#open?.kind !== kind || begins === true) {
      this.#close();
      this.#open = { kind, id: `${++this.#parts}` };
      this.#chunks.push({ type: `${CHUNK_NAME[kind]}-start`, id: this.#open.id });
    }
    this.#chunks.push({ type: `${CHUNK_NAME[kind]}-delta`, id: this.#open.id, delta: text });
  }

  #close(): void {
    if (this.#open !== null) this.#chunks.push({ type: `${CHUNK_NAME[this.#open.kind]}-end`, id: this.#open.id });
    this.#open = null;
  }

  #step(): void {
    this.#endStep();
    this.#chunks.push({ type: "start-step" });
    this.#calls = new Map();
    this.#states = new Map();
    this.#inStep = true;
    this.#whole = false;
  }

  #endStep(): void {
    this.#close();
    if (this.#inStep) this.#chunks.push({ type: "finish-step" });
    this.#inStep = false;
  }

  #approval({
    approval: { callId, name, arguments: input, question, innerRunId, following = 0 },
  }: EventOf<"approval-required">): void {
    this.#known.delete(question);
    this.#following = following;
    if (innerRunId !== undefined) {
      this.#inner.add(callId);
      this.#calls.set(callId, { id: callId, name, input });
    }
    this.#call(callId, name, input).question = question;
    this.#showCalls();
  }

  #result(callId: string, { name, ...result }: { readonly name: string } & NonNullable<UICall["result"]>): void {
    this.#call(callId, name, {}).result = result;
    this.#showCalls();
  }

  /** A call of the present step; one that is not of the last step, which is whole, is of the next. */
  #call(id: string, name: string, input: unknown): UICall {
    const known = this.#calls.get(id);
    if (known !== undefined && known.result === undefined) return known;
    if (this.#whole || !this.#inStep) this.#step();
    const call: UICall = { id, name, input };
    this.#calls.set(id, call);
    return call;
  }

  /** Shows what has changed of the calls. */
  #showCalls(): void {
    this.#close();
    for (const part of callParts(this.#calls.values())) {
      const { toolCallId, state, input } = part;
      const shown = this.#states.get(toolCallId);
      if (shown === undefined) {
        const toolName = part.type.slice("tool-".length);
        this.#chunks.push({ type: "tool-input-available", toolCallId, toolName, input });
      }
      if (shown !== state && state !== "input-available") this.#chunks.push(stateChunk(part));
      this.#states.set(toolCallId, state);
    }
  }

  #finish(chunk: UIMessageChunk): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#endStep();
    this.#chunks.push(chunk);
  }
}

/** What has become of a call. */
function stateChunk(part: UICallPart): UIMessageChunk {
  const { toolCallId } = part;
  switch (part.state) {
    case "approval-requested":
      return { type: "tool-approval-request", approvalId: part.approval.id, toolCallId };
    case "output-available":
      return { type: "tool-output-available", toolCallId, output: part.output };
    case "output-error":
      return { type: "tool-output-error", toolCallId, errorText: part.errorText };
    default:
      return { type: "tool-output-denied", toolCallId };
  }
}

function failureChunk({ error }: EventOf<"run-failed">): UIMessageChunk {
  return error.code === "ABORTED"
    ? { type: "abort", reason: error.message }
    : { type: "error", errorText: error.message };
}
