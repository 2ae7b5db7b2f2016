import type { WireRunEvent } from "../../run-wire.ts";
import { frameOf, wireEvent } from "./wire-event.ts";

const EVENTS_MAX = 5000;
const CHARACTERS_MAX = 256_000;
/** How long they stay when the run has ended, for readers that are about to take them. */
const KEPT_MS = 5000;

/** Where a reader is in the events of a run: at an entry, and after so many events that were told live since. */
export interface EventPlace {
  readonly seq: number;
  readonly delta: number;
}

/** An event that no entry makes: where it belongs, and how it is sent. */
export interface LiveEvent extends EventPlace {
  readonly frame: string;
}

interface Told {
  events: LiveEvent[];
  characters: number;
  readonly wakes: Set<() => void>;
  forgetting: NodeJS.Timeout | undefined;
}

/** What the runs of this process tell beside what lasts, for those who listen now or come a little later. */
export class LiveEvents {
  readonly #runs = new Map<string, Told>();

  /** `seq` is the position of the run's last entry. */
  tell(event: WireRunEvent, seq: number): void {
    const told = this.#of(event.runId);
    const last = told.events.at(-1);
    clearTimeout(told.forgetting);
    const frame = frameOf(wireEvent(event));
    told.events.push({ seq, delta: last?.seq === seq ? last.delta + 1 : 1, frame });
    told.characters += frame.length;
    if (told.events.length > EVENTS_MAX || told.characters > CHARACTERS_MAX) dropHalf(told);
    for (const wake of told.wakes) wake();
  }

  /** The events after a place, as far as they are kept. */
  after(runId: string, { seq, delta }: EventPlace): readonly LiveEvent[] {
    const events = this.#runs.get(runId)?.events ?? [];
    const from = events.findLastIndex((event) => event.seq < seq || (event.seq === seq && event.delta <= delta));
    return events.slice(from + 1);
  }

  /** From now on `wake` is called with every event of the run; what comes back ends that. */
  listen(runId: string, wake: () => void): () => void {
    const { wakes } = this.#of(runId);
    wakes.add(wake);
    return () => {
      wakes.delete(wake);
      this.#forget(runId);
    };
  }

  /** The run is not in this process any more. */
  end(runId: string): void {
    const told = this.#of(runId);
    told.forgetting = setTimeout(() => {
      told.events = [];
      told.characters = 0;
      this.#forget(runId);
    }, KEPT_MS).unref();
  }

  #of(runId: string): Told {
    const told = this.#runs.get(runId) ?? { events: [], characters: 0, wakes: new Set(), forgetting: undefined };
    this.#runs.set(runId, told);
    return told;
  }

  #forget(runId: string): void {
    const told = this.#runs.get(runId);
    if (told?.events.length === 0 && told.wakes.size === 0) this.#runs.delete(runId);
  }
}

/** Half at a time, so that the cost of an event stays constant. */
function dropHalf(told: Told): void {
  told.events = told.events.slice(Math.ceil(told.events.length / 2));
  told.characters = told.events.reduce((sum, { frame }) => sum + frame.length, 0);
}
