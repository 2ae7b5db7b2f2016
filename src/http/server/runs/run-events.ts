import type { WireRunEvent } from "../../wire.ts";
import { HttpError } from "../http-error.ts";
import { type FrameSource, FRAME_CHARACTERS_MAX } from "./event-streams.ts";

const FRAMES_MAX = 10_000;
const CHARACTERS_MAX = 2_000_000;
const DELTAS: ReadonlySet<string> = new Set(["text-delta", "thinking-delta", "tool-call-delta"]);

/** How much of a run's events is kept; tests make it small. */
export interface EventLimits {
  readonly framesMax: number;
  readonly charactersMax: number;
}

/** One event as it is sent. */
interface Frame {
  /** Counts all events of the run, from 1. */
  readonly number: number;
  readonly seq: number;
  readonly delta: number;
  readonly text: string;
}

/**
 * The events of one run, numbered, as they are sent.
 *
 * - An event's id is `seq.delta`: how many durable events there were, itself included, and how many deltas since the last.
 * - Whoever joins after an id gets exactly what follows it, or is told that this is gone; nothing is left out silently.
 * - What is kept is limited. Deltas of rounds that are over go first, since the round's end says what they said; then the
 *   oldest events.
 */
export class RunEvents {
  readonly #runId: string;
  readonly #limits: EventLimits;
  readonly #wakes = new Set<() => void>();
  #frames: Frame[] = [];
  #characters = 0;
  #last: Omit<Frame, "text"> = { number: 0, seq: 0, delta: 0 };
  /** The number of the latest event that is not kept any more. */
  #goneThrough = 0;
  /** The number of the latest event that says what all deltas before it said. */
  #roundEnd = 0;
  #ended = false;

  constructor(runId: string, limits: EventLimits = { framesMax: FRAMES_MAX, charactersMax: CHARACTERS_MAX }) {
    this.#runId = runId;
    this.#limits = limits;
  }

  /** About how much memory the kept events take, in characters. */
  get characters(): number {
    return this.#characters;
  }

  add(event: WireRunEvent): void {
    const { number, seq, delta } = this.#last;
    const isDelta = DELTAS.has(event.type);
    this.#last = { number: number + 1, seq: isDelta ? seq : seq + 1, delta: isDelta ? delta + 1 : 0 };
    const text = `id: ${this.#last.seq}.${this.#last.delta}\n${frameOf(event)}`;
    this.#frames.push({ ...this.#last, text });
    this.#characters += text.length;
    if (event.type === "round-finished" || event.type === "model-retry") this.#roundEnd = this.#last.number;
    const { framesMax, charactersMax } = this.#limits;
    if (this.#frames.length > framesMax || this.#characters > charactersMax) this.#makeRoom();
    this.#wake();
  }

  /** No event follows. */
  end(): void {
    this.#ended = true;
    this.#wake();
  }

  /**
   * The events after that id, or from the beginning; null when the run has ended there.
   *
   * @throws {HttpError} `EVENT_ID_UNKNOWN` for an id that no event has had; `EVENT_GONE` when what follows is not kept.
   */
  read(lastEventId: string | null): FrameSource | null {
    let number = lastEventId === null ? 0 : this.#numberOf(lastEventId);
    if (this.#ended && lastEventId !== null && number === this.#last.number) return null;
    return {
      take: () => {
        const frames = this.#framesAfter(number);
        if (frames.length === 0) return this.#ended ? null : "";
        return frames
          .map((frame) => {
            const missing = frame.number - number - 1;
            number = frame.number;
            if (missing === 0) return frame.text;
            return frameOf({ type: "events-dropped", count: missing, runId: this.#runId }) + frame.text;
          })
          .join("");
      },
      attach: (wake) => {
        this.#wakes.add(wake);
        return () => this.#wakes.delete(wake);
      },
    };
  }

  /** As many as go in one piece, and at least one where there is one. */
  #framesAfter(number: number): readonly Frame[] {
    const from = this.#indexWhere((frame) => frame.number > number);
    let [to, characters] = [from, 0];
    while (to < this.#frames.length && characters < FRAME_CHARACTERS_MAX) {
      characters += this.#frames[to++]?.text.length ?? 0;
    }
    return this.#frames.slice(from, to);
  }

  #numberOf(id: string): number {
    const [, seq = Number.NaN, delta = Number.NaN] = (/^(\d{1,15})\.(\d{1,15})$/.exec(id) ?? []).map(Number);
    if (seq === 0 && delta === 0) return this.#goneThrough === 0 ? 0 : gone(id);
    const follows = (frame: Omit<Frame, "text">): boolean =>
      frame.seq > seq || (frame.seq === seq && frame.delta > delta);
    const index = this.#indexWhere(follows);
    const before = this.#frames[index - 1];
    if (before?.seq === seq && before.delta === delta) {
      return before.number < this.#goneThrough ? gone(id) : before.number;
    }
    const after = this.#frames[index];
    // Where two kept events are neighbours, there never was one between them.
    if (after === undefined || after.number === (before?.number ?? 0) + 1) {
      throw new HttpError(
        "EVENT_ID_UNKNOWN",
        "The run has no event of that id; join without Last-Event-ID to begin at its first one.",
      );
    }
    return gone(id);
  }

  /** The index of the first kept event that the condition holds for; it must hold for all that follow, too. */
  #indexWhere(holds: (frame: Frame) => boolean): number {
    let [low, high] = [0, this.#frames.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (holds(this.#frames[middle] as Frame)) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** Halves what is kept, so that the cost of an event stays constant. The latest quarter stays whole for who rejoins. */
  #makeRoom(): void {
    const recent = this.#frames[this.#startOfLast(1 / 4)]?.number ?? 0;
    const kept = this.#frames.filter(({ delta, number }) => delta === 0 || number > this.#roundEnd || number >= recent);
    this.#keep(kept);
    this.#keep(this.#frames.slice(this.#startOfLast(1 / 2)));
  }

  /** Where the latest events begin that take that share of what may be kept; the last one always counts. */
  #startOfLast(share: number): number {
    const { framesMax, charactersMax } = this.#limits;
    let [index, characters] = [this.#frames.length - 1, this.#frames.at(-1)?.text.length ?? 0];
    while (index > 0 && this.#frames.length - index < framesMax * share) {
      characters += this.#frames[index - 1]?.text.length ?? 0;
      if (characters > charactersMax * share) break;
      index--;
    }
    return index;
  }

  #keep(frames: Frame[]): void {
    if (frames.length === this.#frames.length) return;
    const kept = new Set(frames);
    const dropped = this.#frames.findLast((frame) => !kept.has(frame))?.number ?? 0;
    this.#goneThrough = Math.max(this.#goneThrough, dropped);
    this.#frames = frames;
    this.#characters = frames.reduce((sum, { text }) => sum + text.length, 0);
  }

  #wake(): void {
    for (const wake of this.#wakes) wake();
  }
}

function frameOf(event: WireRunEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}

function gone(id: string): never {
  throw new HttpError(
    "EVENT_GONE",
    `What followed event ${id} is not kept any more; read the session's entries and join without Last-Event-ID.`,
  );
}
