import { isThenable } from "./is-thenable.ts";
import type { RunEvent } from "./run-event.ts";

/** How many events of a run are kept for readers that come late or are slow. */
export const EVENTS_MAX = 10_000;

/** What a reader gets in the place of events that it was too slow, or came too late, for. */
export type EventsDropped = Extract<RunEvent, { type: "events-dropped" }>;

/** An event as it is told to a log, which adds whose it is. */
export type Unsigned<Event> = Event extends unknown ? Omit<Event, "runId"> : never;

/** The events of one run. Every reader starts at the first one that is still kept. */
export class EventLog<Event extends { readonly type: string; readonly runId: string } = RunEvent> {
  readonly #runId: string;
  readonly #report: (error: unknown) => void;
  readonly #listener: ((event: Event) => void) | undefined;
  #events: Event[] = [];
  /** How many events were dropped from the front. */
  #dropped = 0;
  #ended = false;
  #waiting: (() => void)[] = [];

  constructor(runId: string, listener: ((event: Event) => void) | undefined, report: (error: unknown) => void) {
    this.#runId = runId;
    this.#listener = listener;
    this.#report = report;
  }

  add(told: Unsigned<Event>): void {
    if (this.#ended) return;
    const event = Object.freeze({ ...told, runId: this.#runId }) as unknown as Event;
    this.#events.push(event);
    // Dropping half at a time keeps the cost of an event constant.
    if (this.#events.length >= EVENTS_MAX * 2) {
      this.#dropped += EVENTS_MAX;
      this.#events = this.#events.slice(EVENTS_MAX);
    }
    this.#tell(event);
    if (this.#waiting.length > 0) this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Event | EventsDropped, void, undefined> {
    for (let next = 0; ; next++) {
      if (next < this.#dropped) {
        yield { type: "events-dropped", count: this.#dropped - next, runId: this.#runId };
        next = this.#dropped;
      }
      while (next - this.#dropped >= this.#events.length) {
        if (this.#ended) return;
        await new Promise<void>((resolve) => this.#waiting.push(resolve));
      }
      if (next < this.#dropped) {
        next--;
        continue;
      }
      yield this.#events[next - this.#dropped] as Event;
    }
  }

  #tell(event: Event): void {
    if (this.#listener === undefined) return;
    try {
      const returned: unknown = this.#listener(event);
      // A listener may be an async function, whatever its type says.
      if (isThenable(returned)) Promise.resolve(returned).catch(this.#report);
    } catch (error) {
      this.#report(error);
    }
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const wake of waiting) wake();
  }
}
