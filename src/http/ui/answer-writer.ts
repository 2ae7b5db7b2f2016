import { type AnswerChange, AnswerReducer } from "../../agent/answer-reducer.ts";
import type { RunEvent } from "../../agent/run-event.ts";
import type { Approval } from "../../session/log/run-event.ts";
import type { TextPiece } from "../../agent/deduped-text.ts";
import type { UIMessageChunk } from "./ai-sdk.ts";
import { type BlobUrl, callParts, uiPartsOf, type UICallPart } from "./ui-parts.ts";

const CHUNK_NAME = { text: "text", thinking: "reasoning" } as const;

/** Writes the events of a run as the chunks of one message of the AI SDK, which shows what `toUIMessages` shows. */
export class AnswerWriter {
  /** Chunks that were not returned yet. */
  #chunks: UIMessageChunk[];
  readonly #reducer: AnswerReducer;
  /** Answered questions whose events were not read yet: the reader has all events before them. */
  readonly #known: Set<string>;
  readonly #files: { readonly blobUrl?: BlobUrl };
  #parts = 0;
  #open: { readonly kind: TextPiece["kind"]; readonly id: string } | null = null;
  #inStep = false;
  /** The states of the calls that the reader has. */
  readonly #states = new Map<string, UICallPart["state"]>();
  /** True once the message has ended: the run has ended, or it waits for an answer. */
  ended = false;

  /** Leaves out the events up to the last of the questions `after`: a reader that has answered them has these events. */
  constructor(messageId: string, after: readonly string[] = [], blobUrl?: BlobUrl) {
    this.#files = blobUrl === undefined ? {} : { blobUrl };
    this.#chunks = [{ type: "start", messageId }];
    this.#reducer = new AnswerReducer({ answered: after });
    this.#known = new Set(after);
  }

  /** Returns the chunks of some events. The message ends when the run waits for an answer. */
  take(events: readonly RunEvent[], asked: readonly Pick<Approval, "question" | "callId">[]): UIMessageChunk[] {
    for (const event of events) {
      const kept = this.#known.size > 0 ? this.#chunks.length : null;
      for (const change of this.#reducer.take(event)) this.#apply(change);
      if (kept !== null && !this.ended) this.#chunks.length = kept;
    }
    const waits = this.#known.size === 0 && this.#reducer.waitsFor(asked).length > 0;
    if (waits) this.#finish({ type: "finish", finishReason: "tool-calls" });
    return this.#chunks.splice(0);
  }

  #apply(change: AnswerChange): void {
    switch (change.type) {
      case "step-started":
        this.#endStep();
        this.#inStep = true;
        this.#states.clear();
        this.#chunks.push({ type: "start-step" });
        break;
      case "text":
        this.#write(change);
        break;
      case "answer-finished":
        this.#close();
        for (const part of uiPartsOf(change.message.content, this.#files)) {
          if (part.type === "file") this.#chunks.push({ type: "file", url: part.url, mediaType: part.mediaType });
        }
        break;
      case "call":
        this.#known.delete(change.call.question ?? "");
        this.#showCalls();
        break;
      case "finished":
        this.#finish({ type: "finish", finishReason: change.truncated ? "length" : "stop" });
        break;
      case "cancelled":
        this.#finish({ type: "abort", reason: change.error.message });
        break;
      case "failed":
        this.#finish({ type: "error", errorText: change.error.message });
        break;
      default:
    }
  }

  #write({ kind, text, begins }: TextPiece): void {
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

  /** Writes the calls whose state has changed. */
  #showCalls(): void {
    this.#close();
    for (const part of callParts(this.#reducer.calls)) {
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

/** The chunk of a call's state. */
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
