import type { SessionRun } from "../agent/session-run.ts";
import type { GroupRun } from "../group/group-run.ts";
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

type Event = LiveEvent["event"];

/** A run of this process, and who hears of it. */
interface ToldRun {
  readonly listen: (listener: (event: Event, position: number) => void) => () => void;
  /** Where the events belong that no entry makes. */
  readonly positions: WeakMap<Event, EventPosition>;
  stop: (() => void) | null;
}

/** Publishes what the runs of this process tell beside what lasts, as long as someone looks on. */
export class LiveTeller {
  readonly #bell: RunBell;
  readonly #runs = new Map<string, ToldRun>();
  /** Until when someone looks on, by topic. */
  readonly #lookers = new Map<string, number>();
  #subscription: Listening | null = null;

  constructor(bell: RunBell) {
    this.#bell = bell;
  }

  async start(): Promise<void> {
    this.#subscription = await subscribeJson<Lookers>(this.#bell, LOOKERS_TOPIC, (lookers) => this.#hear(lookers));
  }

  /** Tells of a run from now on; what comes back ends that. */
  tell(key: RunKey, run: SessionRun | GroupRun): () => void {
    const topic = topicOf(key);
    const told: ToldRun = { listen: run.listen.bind(run), positions: new WeakMap(), stop: null };
    let last: EventPosition = { seq: -1, delta: 0 };
    told.listen((event, position) => {
      if (isLasting(event)) return;
      last = { seq: position, delta: last.seq === position ? last.delta + 1 : 1 };
      told.positions.set(event, last);
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
    const position = told.positions.get(event);
    if (position !== undefined) publishJson(this.#bell, topic, { ...position, event } satisfies LiveEvent);
  }

  #isLookedAt(topic: string): boolean {
    return (this.#lookers.get(topic) ?? 0) > Date.now();
  }
}

/** What the log tells of an agent's run, and of a group's: those who follow a run have it from there. */
const LASTING: ReadonlySet<string> = new Set<Event["type"]>([
  "run-started",
  "round-finished",
  "tool-finished",
  "approval-required",
  "compaction",
  "run-parked",
  "run-finished",
  "run-failed",
]);
const LASTING_OF_GROUPS: ReadonlySet<string> = new Set<Event["type"]>([
  "group-started",
  "agent-finished",
  "agent-failed",
  "approval-required",
  "group-finished",
  "group-failed",
]);
/** What an agent of a group tells of itself lasts in the log only as the group tells it. */
const isOfGroup = (event: Event): boolean => "agent" in event || event.type.startsWith("group-");

function isLasting(event: Event): boolean {
  // The log of the run around it does not say what a run inside of a tool asks.
  if (event.type === "approval-required") return event.approval.innerRunId === undefined;
  return (isOfGroup(event) ? LASTING_OF_GROUPS : LASTING).has(event.type);
}
