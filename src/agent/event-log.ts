import { isThenable } from "./is-thenable.ts";
import type { RunEvent } from "./run-event.ts";

/** How many events of a run are kept for late or slow readers. */
export const EVENTS_MAX = 10_000;

/** Replaces the events that a reader missed because it was too slow or too late. */
export type EventsDropped = Extract<RunEvent, { type: "events-dropped" }>;

/** An event as passed to a log, which adds the run's id. */
export type Unsigned<Event> = Event extends unknown ? Omit<Event, "runId"> : never;

/**
 * The origin of an event: recorded in the run's log (`recorded`), emitted between entries (`live`), or recorded before
 * this process listened (`repeated`).
 */
export type EventOrigin = "recorded" | "live" | "repeated";

/**
 * Called with an event, the position of the run's last entry at that time (-1 before the first), and the event's
 * origin.
 */
export type EventListener<Event> = (event: Event, position: number, source: EventOrigin) => void;

/** Options of an event log. */
export interface EventLogInit<Event> {
  readonly runId: string;
  readonly listener: ((event: Event) => void) | undefined;
  /** Called if a listener fails. */
  readonly report: (error: unknown) => void;
  /** The position of the run's last entry in its log; -1 before the first, or if the run is not stored. */
  readonly position: () => number;
}

/** The events of one run. Every reader starts at the oldest one that is still kept. */
export class EventLog<Event extends { readonly type: string; readonly runId: string } = RunEvent> {
  readonly #runId: string;
  readonly #report: (error: unknown) => void;
  readonly #position: () => number;
  readonly #listeners = new Set<EventListener<Event>>();
  #events: Event[] = [];
  #positions: number[] = [];
  #sources: EventOrigin[] = [];
  /** The number of events dropped from the front. */
  #dropped = 0;
  #ended = false;
  #subscribed = false;
  #waiting: (() => void)[] = [];

  constructor({ runId, listener, report, position }: EventLogInit<Event>) {
    this.#runId = runId;
    this.#report = report;
    this.#position = position;
    if (listener === undefined) return;
    this.#listeners.add(listener);
    this.#subscribed = true;
  }

  /** Whether anyone has ever listened to or read the events. */
  get subscribed(): boolean {
    return this.#subscribed;
  }

  /**
   * Calls the listener with the kept events, and then with each new one synchronously. Returns a function that stops
   * this.
   */
  listen(listener: EventListener<Event>): () => void {
    this.#subscribed = true;
    this.#events.forEach((event, index) => {
      this.#emit(listener, event, this.#positions[index] as number, this.#sources[index] as EventOrigin);
    });
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * Adds an event that is not shared yet: the log sets its run id and freezes it. `position` is that of its entry, if
   * later entries were folded already.
   */
  add(added: Unsigned<Event>, source: EventOrigin = "live", position: number = this.#position()): void {
    if (this.#ended) return;
    const event = added as unknown as Event & { runId: string };
    event.runId = this.#runId;
    Object.freeze(event);
    this.#events.push(event);
    this.#positions.push(position);
    this.#sources.push(source);
    // Dropping half at a time keeps the amortized cost of an event constant.
    if (this.#events.length >= EVENTS_MAX * 2) {
      this.#dropped += EVENTS_MAX;
      this.#events = this.#events.slice(EVENTS_MAX);
      this.#positions = this.#positions.slice(EVENTS_MAX);
      this.#sources = this.#sources.slice(EVENTS_MAX);
    }
    for (const listener of this.#listeners) this.#emit(listener, event, position, source);
    if (this.#waiting.length > 0) this.#wake();
  }

  end(): void {
    this.#ended = true;
    this.#wake();
  }

  [Symbol.asyncIterator](): AsyncGenerator<Event | EventsDropped, void, undefined> {
    this.#subscribed = true;
    return this.#read();
  }

  async *#read(): AsyncGenerator<Event | EventsDropped, void, undefined> {
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

  #emit(listener: EventListener<Event>, event: Event, position: number, source: EventOrigin): void {
    try {
      const returned: unknown = listener(event, position, source);
      // A listener may be an async function, whatever its type declares.
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
