import { uuidv7 } from "../internal/uuid.ts";
import { SessionError } from "../session/errors.ts";
import { checkedMessage } from "../session/checked-message.ts";
import type { Content, Message } from "../session/message.ts";
import { QUEUED_KEY, type QueuedInput } from "../session/log/run-fold.ts";
import type { RunLog } from "./persist/run-log.ts";

/** Input of users during a run, until it is delivered. */
export class RunInputs {
  readonly #log: RunLog;
  readonly #waiting: QueuedInput[] = [];
  readonly #known = new Set<string>();
  #writing = 0;
  #settled: (() => void)[] = [];
  #closed = false;

  constructor(log: RunLog) {
    this.#log = log;
  }

  /** Restores the undelivered input of an interrupted run. */
  restore(queued: readonly QueuedInput[]): void {
    const fresh = queued.filter(({ id }) => !this.#known.has(id));
    for (const { id } of fresh) this.#known.add(id);
    this.#waiting.unshift(...fresh);
  }

  /** Takes input that someone else recorded; known input is ignored. */
  receive(input: QueuedInput): void {
    if (this.#known.has(input.id)) return;
    this.#known.add(input.id);
    this.#waiting.push(input);
  }

  /** Queues input; resolves once it is recorded. */
  async add(kind: QueuedInput["kind"], given: Content): Promise<void> {
    const id = uuidv7();
    const content = messageFor({ id, kind, content: given }).content as Content;
    if (this.#closed) throw this.#ended();
    this.#writing += 1;
    this.#known.add(id);
    try {
      await this.#log.note([{ type: "queued", id, runId: this.#log.runId, kind, content }]);
      // The run failed in the meantime. Recorded input is for the recovery; other input is lost.
      if (this.#closed && !this.#log.kept) throw this.#ended();
      this.#waiting.push({ id, kind, content });
    } finally {
      this.#writing -= 1;
      if (this.#writing === 0) for (const wake of this.#settled.splice(0)) wake();
    }
  }

  /** Removes the input of one kind from the queue, as messages. */
  take(kind: QueuedInput["kind"]): Message[] {
    if (this.#waiting.length === 0) return [];
    const taken = this.#waiting.filter((input) => input.kind === kind);
    for (const input of taken) this.#waiting.splice(this.#waiting.indexOf(input), 1);
    return taken.map(this.#deliver);
  }

  /** Removes all input from the queue, as messages. */
  async takeAll(): Promise<Message[]> {
    while (this.#writing > 0) await new Promise<void>((resolve) => this.#settled.push(resolve));
    return this.#waiting.splice(0).map(this.#deliver);
  }

  /** Whether input is queued or about to be. */
  get hasMore(): boolean {
    return this.#waiting.length + this.#writing > 0;
  }

  /** From here on, input is refused with `RUN_ENDED`, until it is opened again. */
  close(): void {
    this.#closed = true;
  }

  open(): void {
    this.#closed = false;
  }

  readonly #deliver = (input: QueuedInput): Message => {
    const message = messageFor(input);
    this.#log.setAuthor(message, input.by);
    return message;
  };

  #ended(): SessionError {
    return new SessionError("RUN_ENDED", `Run ${this.#log.runId} has ended; start another run with your message.`);
  }
}

function messageFor({ id, content }: QueuedInput): Message {
  return checkedMessage({ role: "user", content, metadata: { [QUEUED_KEY]: id } });
}
