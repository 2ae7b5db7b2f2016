import type { SessionRun } from "../agent/session-run.ts";
import type { GroupRun } from "../group/group-run.ts";
import {
  LOOKER_MS,
  LOOKERS_TOPIC,
  type LiveEvent,
  type LiveNotice,
  isLasting,
  type Lookers,
  publishJson,
  type RunKey,
  readLookers,
  subscribeJson,
  topicOf,
} from "./live-event.ts";
import type { Listening, RunQueue } from "./run-queue.ts";

type Event = LiveEvent["event"];

/** A run of this process, and who hears of it. */
interface ToldRun {
  readonly listen: (listener: (event: Event, position: number) => void) => () => void;
  /** What is published about each event. */
  readonly notices: WeakMap<Event, LiveNotice>;
  stop: (() => void) | null;
}

/** Publishes what the runs of this process tell beside what lasts, as long as someone looks on. */
export class LiveTeller {
  readonly #queue: RunQueue;
  readonly #runs = new Map<string, ToldRun>();
  /** Until when someone looks on, by topic. */
  readonly #lookers = new Map<string, number>();
  #subscription: Listening | null = null;

  constructor(queue: RunQueue) {
    this.#queue = queue;
  }

  async start(): Promise<void> {
    this.#subscription = await subscribeJson(this.#queue, LOOKERS_TOPIC, readLookers, (lookers) => this.#hear(lookers));
  }

  /** Tells of a run from now on; what comes back ends that. */
  tell(key: RunKey, run: SessionRun | GroupRun): () => void {
    const topic = topicOf(key);
    const told: ToldRun = { listen: run.listen.bind(run), notices: new WeakMap(), stop: null };
    let last: LiveNotice | null = null;
    told.listen((event, seq) => {
      const since: number = last?.since ?? seq;
      const [delta, count]: [number, number] = [last?.seq === seq ? last.delta : 0, last?.count ?? 0];
      last = isLasting(event)
        ? { seq, delta, since, count }
        : { seq, delta: delta + 1, since, count: count + 1, event };
      told.notices.set(event, last);
    });
    this.#runs.set(topic, told);
    if (this.#isLookedAt(topic)) this.#begin(topic, told);
    return () => {
      told.stop?.();
      if (this.#runs.get(topic) === told) this.#runs.delete(topic);
    };
  }

  async close(): Promise<void> {
    await this.#subscription?.close();
  }

  #hear({ topics, joined }: Lookers): void {
    const now = Date.now();
    for (const [topic, until] of this.#lookers) if (until < now) this.#lookers.delete(topic);
    for (const topic of topics) {
      this.#lookers.set(topic, now + LOOKER_MS);
      const told = this.#runs.get(topic);
      if (told === undefined) continue;
      if (told.stop === null) this.#begin(topic, told);
      // Who was there before knows by their positions that it has them.
      else if (joined) told.listen((event) => this.#publish(topic, told, event))();
    }
  }

  #begin(topic: string, told: ToldRun): void {
    told.stop = told.listen((event) => {
      if (this.#isLookedAt(topic)) return this.#publish(topic, told, event);
      told.stop?.();
      told.stop = null;
    });
  }

  #publish(topic: string, told: ToldRun, event: Event): void {
    const notice = told.notices.get(event);
    if (notice !== undefined) publishJson(this.#queue, topic, notice);
  }

  #isLookedAt(topic: string): boolean {
    return (this.#lookers.get(topic) ?? 0) > Date.now();
  }
}
