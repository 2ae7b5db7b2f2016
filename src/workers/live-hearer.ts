import {
  type EventPosition,
  LOOKER_MS,
  LOOKERS_TOPIC,
  type LiveEvent,
  type LiveNotice,
  type Lookers,
  publishJson,
  type RunKey,
  readNotice,
  subscribeJson,
  topicOf,
} from "./live-event.ts";
import type { Listening, RunQueue } from "./run-queue.ts";

const EVENTS_MAX = 5000;
const CHARACTERS_MAX = 256_000;
/** How long what was heard stays when nobody reads it, for who comes back at once. */
const KEPT_MS = 5000;

/** An event that was told live, as it is sent on. */
export interface HeardEvent extends LiveEvent {
  readonly text: string;
}

/** What is known of one run. */
interface Heard {
  events: HeardEvent[];
  /** The latest notice. */
  last: LiveNotice | null;
  characters: number;
  readonly wakes: Set<() => void>;
  readonly subscription: Promise<Listening>;
  forgetting: NodeJS.Timeout | undefined;
}

/** What runs tell beside what lasts, wherever they are, for those who read here. */
export class LiveHearer {
  readonly #queue: RunQueue;
  readonly #write: (event: LiveEvent["event"]) => string;
  readonly #report: (error: unknown) => void;
  readonly #runs = new Map<string, Heard>();
  #timer: NodeJS.Timeout | null = null;

  /** `write` says how an event is sent on, once for all who read it. */
  constructor(queue: RunQueue, write: (event: LiveEvent["event"]) => string, report: (error: unknown) => void) {
    this.#queue = queue;
    this.#write = write;
    this.#report = report;
  }

  /** How many runs are being followed. */
  get size(): number {
    return this.#runs.size;
  }

  /** From now on `wake` is called with every event of the run; what comes back ends that. */
  listen(key: RunKey, wake: () => void): () => void {
    const topic = topicOf(key);
    const heard = this.#runs.get(topic) ?? this.#begin(topic);
    clearTimeout(heard.forgetting);
    heard.wakes.add(wake);
    return () => {
      heard.wakes.delete(wake);
      if (heard.wakes.size > 0) return;
      clearTimeout(heard.forgetting);
      heard.forgetting = setTimeout(() => this.#forget(topic), KEPT_MS).unref();
    };
  }

  /** The events after a position, as far as they are kept. */
  after(key: RunKey, { seq, delta }: EventPosition): readonly HeardEvent[] {
    const events = this.#runs.get(topicOf(key))?.events ?? [];
    const from = events.findLastIndex((event) => event.seq < seq || (event.seq === seq && event.delta <= delta));
    return events.slice(from + 1);
  }

  /** The latest that was told about a run, with or without an event. */
  last(key: RunKey): LiveNotice | null {
    return this.#runs.get(topicOf(key))?.last ?? null;
  }

  close(): void {
    for (const topic of [...this.#runs.keys()]) this.#forget(topic);
  }

  #begin(topic: string): Heard {
    const subscription = subscribeJson(this.#queue, topic, readNotice, (notice) => this.#hear(heard, notice));
    const heard: Heard = {
      events: [],
      last: null,
      characters: 0,
      wakes: new Set(),
      subscription,
      forgetting: undefined,
    };
    this.#runs.set(topic, heard);
    subscription.then(() => this.#say({ topics: [topic], joined: true }), this.#report);
    this.#timer ??= setInterval(
      () => this.#say({ topics: [...this.#runs.keys()], joined: false }),
      LOOKER_MS / 3,
    ).unref();
    return heard;
  }

  /** What is told again for others is known already. */
  #hear(heard: Heard, notice: LiveNotice): void {
    const { event } = notice;
    if (heard.last !== null && !isAfter(notice, heard.last)) return;
    heard.last = notice;
    if (event !== undefined) {
      const text = this.#write(event);
      heard.events.push({ ...notice, event, text });
      heard.characters += text.length;
      if (heard.events.length > EVENTS_MAX || heard.characters > CHARACTERS_MAX) dropHalf(heard);
    }
    for (const wake of heard.wakes) wake();
  }

  #say(lookers: Lookers): void {
    publishJson(this.#queue, LOOKERS_TOPIC, lookers);
  }

  #forget(topic: string): void {
    const heard = this.#runs.get(topic);
    clearTimeout(heard?.forgetting);
    this.#runs.delete(topic);
    heard?.subscription.then((subscription) => subscription.close()).catch(() => {});
    if (this.#runs.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }
}

/** Whether a notice comes after another: a run that goes on elsewhere is told of by whoever has it now. */
function isAfter(one: LiveNotice, other: LiveNotice): boolean {
  if (one.since !== other.since) return one.since > other.since;
  if (one.seq !== other.seq) return one.seq > other.seq;
  return one.delta > other.delta;
}

/** Half at a time, so that the cost of an event stays constant. */
function dropHalf(heard: Heard): void {
  heard.events = heard.events.slice(Math.ceil(heard.events.length / 2));
  heard.characters = heard.events.reduce((sum, { text }) => sum + text.length, 0);
}
