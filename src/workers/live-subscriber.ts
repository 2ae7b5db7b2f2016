import {
  type EventPosition,
  type LiveEvent,
  type LiveNotice,
  publishJson,
  type RunKey,
  readNotice,
  subscribeJson,
  topicOf,
  VIEWER_MS,
  VIEWERS_TOPIC,
  type Viewers,
} from "./live-event.ts";
import type { Listening, RunQueue } from "./run-queue.ts";

const EVENTS_MAX = 5000;
const CHARACTERS_MAX = 256_000;
/** How long the events of a run are kept without a reader, so that one that reconnects finds them. */
const KEPT_MS = 5000;

/** A received live event with its written form. */
export interface ReceivedEvent extends LiveEvent {
  readonly text: string;
}

/** A run with readers in this process. */
interface FollowedRun {
  events: ReceivedEvent[];
  /** The latest notice. */
  last: LiveNotice | null;
  characters: number;
  readonly wakes: Set<() => void>;
  readonly subscription: Promise<Listening>;
  forgetting: NodeJS.Timeout | undefined;
}

/** Receives the live events of runs from the queue, and keeps the latest ones for the readers in this process. */
export class LiveSubscriber {
  readonly #queue: RunQueue;
  readonly #write: (event: LiveEvent["event"]) => string;
  readonly #report: (error: unknown) => void;
  readonly #runs = new Map<string, FollowedRun>();
  #timer: NodeJS.Timeout | null = null;

  /** `write` serializes an event, once for all readers. */
  constructor(queue: RunQueue, write: (event: LiveEvent["event"]) => string, report: (error: unknown) => void) {
    this.#queue = queue;
    this.#write = write;
    this.#report = report;
  }

  /** How many runs are followed. */
  get size(): number {
    return this.#runs.size;
  }

  /** Calls `wake` for each notice about the run. Returns a function that stops this. */
  listen(key: RunKey, wake: () => void): () => void {
    const topic = topicOf(key);
    const run = this.#runs.get(topic) ?? this.#follow(topic);
    clearTimeout(run.forgetting);
    run.wakes.add(wake);
    return () => {
      run.wakes.delete(wake);
      if (run.wakes.size > 0) return;
      clearTimeout(run.forgetting);
      run.forgetting = setTimeout(() => this.#forget(topic), KEPT_MS).unref();
    };
  }

  /** The kept events after a position. */
  after(key: RunKey, { seq, delta }: EventPosition): readonly ReceivedEvent[] {
    const events = this.#runs.get(topicOf(key))?.events ?? [];
    const from = events.findLastIndex((event) => event.seq < seq || (event.seq === seq && event.delta <= delta));
    return events.slice(from + 1);
  }

  /** The latest notice about a run. */
  last(key: RunKey): LiveNotice | null {
    return this.#runs.get(topicOf(key))?.last ?? null;
  }

  close(): void {
    for (const topic of [...this.#runs.keys()]) this.#forget(topic);
  }

  #follow(topic: string): FollowedRun {
    const subscription = subscribeJson(this.#queue, topic, readNotice, (notice) => this.#receive(run, notice));
    const run: FollowedRun = {
      events: [],
      last: null,
      characters: 0,
      wakes: new Set(),
      subscription,
      forgetting: undefined,
    };
    this.#runs.set(topic, run);
    subscription.then(() => this.#announce({ topics: [topic], joined: true }), this.#report);
    this.#timer ??= setInterval(
      () => this.#announce({ topics: [...this.#runs.keys()], joined: false }),
      VIEWER_MS / 3,
    ).unref();
    return run;
  }

  /** Ignores notices that are published again for new viewers. */
  #receive(run: FollowedRun, notice: LiveNotice): void {
    const { event } = notice;
    if (run.last !== null && !isAfter(notice, run.last)) return;
    run.last = notice;
    if (event !== undefined) {
      const text = this.#write(event);
      run.events.push({ ...notice, event, text });
      run.characters += text.length;
      if (run.events.length > EVENTS_MAX || run.characters > CHARACTERS_MAX) dropHalf(run);
    }
    for (const wake of run.wakes) wake();
  }

  #announce(viewers: Viewers): void {
    publishJson(this.#queue, VIEWERS_TOPIC, viewers);
  }

  #forget(topic: string): void {
    const run = this.#runs.get(topic);
    clearTimeout(run?.forgetting);
    this.#runs.delete(topic);
    run?.subscription.then((subscription) => subscription.close()).catch(() => {});
    if (this.#runs.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}

/** Whether a notice is newer than another. A worker that continues a run has a later `since`. */
function isAfter(one: LiveNotice, other: LiveNotice): boolean {
  if (one.since !== other.since) return one.since > other.since;
  if (one.seq !== other.seq) return one.seq > other.seq;
  return one.delta > other.delta;
}

/** Drops half at a time, so that the cost of an event stays constant. */
function dropHalf(run: FollowedRun): void {
  run.events = run.events.slice(Math.ceil(run.events.length / 2));
  run.characters = run.events.reduce((sum, { text }) => sum + text.length, 0);
}
