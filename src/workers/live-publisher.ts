import type { EventListener } from "../agent/event-log.ts";
import type { SessionRun } from "../agent/session-run.ts";
import type { GroupRun } from "../group/group-run.ts";
import {
  type LiveEvent,
  type LiveNotice,
  publishJson,
  type RunKey,
  readViewers,
  subscribeJson,
  topicOf,
  VIEWER_MS,
  VIEWERS_TOPIC,
  type Viewers,
} from "./live-event.ts";
import type { Listening, RunQueue } from "./run-queue.ts";

type Event = LiveEvent["event"];

/** A published run of this process. */
interface PublishedRun {
  readonly listen: (listener: EventListener<Event>) => () => void;
  /** The notice of each event. */
  readonly notices: WeakMap<Event, LiveNotice>;
  /** Stops publishing; null without viewers. */
  stop: (() => void) | null;
}

/** Publishes the live events of the runs of this process on the queue, as long as they have viewers. */
export class LivePublisher {
  readonly #queue: RunQueue;
  readonly #runs = new Map<string, PublishedRun>();
  /** Until when a topic has viewers. */
  readonly #viewedUntil = new Map<string, number>();
  #subscription: Listening | null = null;

  constructor(queue: RunQueue) {
    this.#queue = queue;
  }

  async start(): Promise<void> {
    this.#subscription = await subscribeJson(this.#queue, VIEWERS_TOPIC, readViewers, (viewers) =>
      this.#receive(viewers),
    );
  }

  /** Publishes a run from now on. Returns a function that stops this. */
  publish(key: RunKey, run: SessionRun | GroupRun): () => void {
    const topic = topicOf(key);
    const published: PublishedRun = { listen: run.listen.bind(run), notices: new WeakMap(), stop: null };
    let last: LiveNotice | null = null;
    published.listen((event, seq, origin) => {
      const since: number = last?.since ?? seq;
      const [delta, count]: [number, number] = [last?.seq === seq ? last.delta : 0, last?.count ?? 0];
      // Readers compute recorded events from the log.
      last =
        origin !== "live" ? { seq, delta, since, count } : { seq, delta: delta + 1, since, count: count + 1, event };
      published.notices.set(event, last);
    });
    this.#runs.set(topic, published);
    if (this.#hasViewers(topic)) this.#start(topic, published);
    return () => {
      published.stop?.();
      if (this.#runs.get(topic) === published) this.#runs.delete(topic);
    };
  }

  async close(): Promise<void> {
    await this.#subscription?.close();
  }

  #receive({ topics, joined }: Viewers): void {
    const now = Date.now();
    for (const [topic, until] of this.#viewedUntil) if (until < now) this.#viewedUntil.delete(topic);
    for (const topic of topics) {
      this.#viewedUntil.set(topic, now + VIEWER_MS);
      const published = this.#runs.get(topic);
      if (published === undefined) continue;
      if (published.stop === null) this.#start(topic, published);
      // All events are published again; older viewers skip those that they have by their positions.
      else if (joined) published.listen((event) => this.#send(topic, published, event))();
    }
  }

  #start(topic: string, published: PublishedRun): void {
    published.stop = published.listen((event) => {
      if (this.#hasViewers(topic)) return this.#send(topic, published, event);
      published.stop?.();
      published.stop = null;
    });
  }

  #send(topic: string, published: PublishedRun, event: Event): void {
    const notice = published.notices.get(event);
    if (notice !== undefined) publishJson(this.#queue, topic, notice);
  }

  #hasViewers(topic: string): boolean {
    return (this.#viewedUntil.get(topic) ?? 0) > Date.now();
  }
}
