import type { UIMessageChunk } from "../../ui/ai-sdk.ts";
import type { RunEvent } from "../../../agent/run-event.ts";
import { AnswerWriter } from "../../ui/answer-writer.ts";
import { QUIET_MS } from "../../ui/to-ui-message-stream.ts";
import type { FrameSource } from "../runs/event-streams.ts";
import type { RunFeed } from "../runs/run-feed.ts";

const DONE = "data: [DONE]\n\n";

/** What a chat's stream is made of. */
export interface ChatSourceInit {
  readonly feed: RunFeed;
  readonly messageId: string;
  /** Questions that were answered just now: what was told up to them is left out. */
  readonly after: readonly string[];
  /** Called when the reader has left before the end. */
  readonly onLeft: () => void;
}

/** A run as the stream of a chat: the chunks of one message, up to where the run ends or waits for a person's word. */
export class ChatSource implements FrameSource {
  readonly #feed: RunFeed;
  readonly #writer: AnswerWriter;
  readonly #onLeft: () => void;
  #begun = false;
  #done = false;
  #quiet = false;
  #left = false;
  #timer: NodeJS.Timeout | undefined;
  #wake: () => void = () => {};

  constructor({ feed, messageId, after, onLeft }: ChatSourceInit) {
    this.#feed = feed;
    this.#writer = new AnswerWriter(messageId, after);
    this.#onLeft = onLeft;
  }

  attach(wake: () => void): () => void {
    this.#wake = wake;
    const detach = this.#feed.attach(wake);
    return () => {
      detach();
      this.leave();
    };
  }

  /** The reader is gone. */
  leave(): void {
    clearTimeout(this.#timer);
    if (!this.#left && !this.#done) this.#onLeft();
    this.#left = true;
  }

  async take(): Promise<string | null> {
    if (this.#done) return null;
    const chunks = this.#begun ? [] : this.#writer.begin();
    this.#begun = true;
    // What makes no chunk, such as what the reader has already, is no reason to wait for more.
    for (let more = true; more && !this.#done; ) {
      const fed = await this.#feed.take();
      for (const { event } of fed ?? []) if (!this.#writer.ended) chunks.push(...this.#writer.take(event as RunEvent));
      more = fed !== null && fed.length > 0 && chunks.length === 0;
      if (fed !== null && fed.length > 0) this.#rest();
      else if (this.#quiet) chunks.push(...this.#writer.pause());
      this.#done = fed === null || this.#writer.ended;
    }
    return chunks.map(frameOf).join("") + (this.#done ? DONE : "");
  }

  /** Something was told: silence counts from here on, where the run waits. */
  #rest(): void {
    clearTimeout(this.#timer);
    this.#quiet = false;
    if (!this.#writer.waitsFor(this.#feed.questions.map(({ callId }) => callId))) return;
    this.#timer = setTimeout(() => {
      this.#quiet = true;
      this.#wake();
    }, QUIET_MS);
  }
}

function frameOf(chunk: UIMessageChunk): string {
  return `data: ${JSON.stringify(chunk)}\n\n`;
}
