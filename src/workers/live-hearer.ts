import {
  type EventPosition,
  LOOKER_MS,
  LOOKERS_TOPIC,
  type LiveEvent,
  type Lookers,
  publishJson,
  type RunKey,
  subscribeJson,
  topicOf,
} from "./live-event.ts";
import type { Listening, RunBell } from "./run-bell.ts";

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
  characters: number;
  readonly wakes: Set<() => void>;
  readonly subscription: Promise<Listening>;
  forgetting: NodeJS.Timeout | undefined;
}

/** What runs tell beside what lasts, wherever they are, for those who read here. */
export class LiveHearer {
  readonly #bell: RunBell;
  readonly #write: (event: LiveEvent["event"]) => string;
  readonly #report: (error: unknown) => void;
  readonly #runs = new Map<string, Heard>();
  #timer: NodeJS.Timeout | null = null;

  /** `write` says how an event is sent on, once for all who read it. */
  constructor(bell: RunBell, write: (event: LiveEvent["event"]) => string, report: (error: unknown) => void) {
    this.#bell = bell;
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

  close(): void {
    for (const topic of [...this.#runs.keys()]) this.#forget(topic);
  }

  #begin(topic: string): Heard {
    const subscription = subscribeJson<LiveEvent>(this.#bell, topic, (event) => this.#hear(heard, event));
    const heard: Heard = { events: [], characters: 0, wakes: new Set(), subscription, forgetting: undefined };
    this.#runs.set(topic, heard);
    subscription.then(() => this.#say({ topics: [topic], joined: true }), this.#report);
    this.#timer ??= setInterval(
      () => this.#say({ topics: [...this.#runs.keys()], joined: false }),
      LOOKER_MS / 3,
    ).unref();
    return heard;
  }

  /** What is told again for others is known already. */
  #hear(heard: Heard, { seq, delta, event }: LiveEvent): void {
    const last = heard.events.at(-1);
    if (last !== undefined && (seq < last.seq || (seq === last.seq && delta <= last.delta))) return;
    const text = this.#write(event);
    heard.events.push({ seq, delta, event, text });
    heard.characters += text.length;
    if (heard.events.length > EVENTS_MAX || heard.characters > CHARACTERS_MAX) dropHalf(heard);
    for (const wake of heard.wakes) wake();
  }

  #say(lookers: Lookers): void {
    publishJson(this.#bell, LOOKERS_TOPIC, lookers);
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

/** Half at a time, so that the cost of an event stays constant. */
function dropHalf(heard: Heard): void {
  heard.events = heard.events.slice(Math.ceil(heard.events.length / 2));
  heard.characters = heard.events.reduce((sum, { text }) => sum + text.length, 0);
}
