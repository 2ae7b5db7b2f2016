import { type AnswerFact, AnswerTeller } from "../../agent/answer-teller.ts";
import type { RunEvent } from "../../agent/run-event.ts";
import type { Approval } from "../../session/log/run-event.ts";
import type { SaidPiece } from "../../agent/said-once.ts";
import type { UIMessageChunk } from "./ai-sdk.ts";
import { callParts, uiPartsOf, type UICallPart } from "./ui-parts.ts";

const CHUNK_NAME = { text: "text", thinking: "reasoning" } as const;

/** Writes the events of a run as the chunks of one message of the AI SDK, which shows what `toUIMessages` shows. */
export class AnswerWriter {
  /** What is to be sent. */
  #chunks: UIMessageChunk[];
  readonly #teller: AnswerTeller;
  /** Questions that are still to come in what the reader has already. */
  readonly #known: Set<string>;
  #parts = 0;
  #open: { readonly kind: SaidPiece["kind"]; readonly id: string } | null = null;
  #inStep = false;
  /** The states of the calls that the reader sees. */
  readonly #states = new Map<string, UICallPart["state"]>();
  /** Whether the message has ended: with the run, or where that waits for a person's word. */
  ended = false;

  /** What was told up to the last of the questions `after` is left out: who answers them has it. */
  constructor(messageId: string, after: readonly string[] = []) {
    this.#chunks = [{ type: "start", messageId }];
    this.#teller = new AnswerTeller({ answered: after });
    this.#known = new Set(after);
  }

  /** What events add to the message. It ends where nothing follows before a person answers what the run asks. */
  take(events: readonly RunEvent[], asked: readonly Pick<Approval, "question" | "callId">[]): UIMessageChunk[] {
    for (const event of events) {
      const before = this.#known.size > 0 ? this.#chunks.length : null;
      for (const fact of this.#teller.take(event)) this.#tell(fact);
      if (before !== null && !this.ended) this.#chunks.length = before;
    }
    const waits = this.#known.size === 0 && this.#teller.waitsFor(asked).length > 0;
    if (waits) this.#finish({ type: "finish", finishReason: "tool-calls" });
    return this.#chunks.splice(0);
  }

  #tell(fact: AnswerFact): void {
    switch (fact.type) {
      case "step-began":
        this.#endStep();
        this.#inStep = true;
        this.#states.clear();
        this.#chunks.push({ type: "start-step" });
        break;
      case "words":
        this.#write(fact);
        break;
      case "answer-whole":
        this.#close();
        for (const part of uiPartsOf(fact.message.content)) {
          if (part.type === "file") this.#chunks.push({ type: "file", url: part.url, mediaType: part.mediaType });
        }
        break;
      case "call":
        this.#known.delete(fact.call.question ?? "");
        this.#showCalls();
        break;
      case "finished":
        this.#finish({ type: "finish", finishReason: fact.truncated ? "length" : "stop" });
        break;
      case "cancelled":
        this.#finish({ type: "abort", reason: fact.error.message });
        break;
      case "failed":
        this.#finish({ type: "error", errorText: fact.error.message });
        break;
      default:
    }
  }

  #write({ kind, text, begins }: SaidPiece): void {
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

  #endStep(): void {
    this.#close();
    if (this.#inStep) this.#chunks.push({ type: "finish-step" });
    this.#inStep = false;
  }

  /** Shows what has changed of the calls. */
  #showCalls(): void {
    this.#close();
    for (const part of callParts(this.#teller.calls)) {
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
    if (this.ended) return;
    this.ended = true;
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
