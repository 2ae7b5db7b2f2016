import type { Entry } from "../../../session/log/entry.ts";
import type { SessionHead } from "../../../session/log/fold.ts";
import { newRun, type RunState, type RunStep, stepRun } from "../../../session/log/run-fold.ts";
import type { SessionStore } from "../../../session/store.ts";
import type { EventPosition } from "../../../workers/live-event.ts";
import type { LiveSubscriber } from "../../../workers/live-subscriber.ts";
import { defined } from "../../../internal/defined.ts";
import type { QuestionView, WireRunEvent } from "../../run-wire.ts";
import { HttpError } from "../http-error.ts";
import type { FrameSource } from "./event-streams.ts";
import type { EntryReader, SessionWatches } from "./session-watches.ts";
import type { RunError } from "../../../session/log/run-event.ts";
import type { JsonObject } from "../../../internal/json.ts";
import { textOf } from "../../../session/message.ts";
import { recordedProblem } from "../problem.ts";

/**
 * How long a recorded event waits for earlier live events, which arrive in batches over a queue and are often later
 * than the log.
 */
const HOLD_MS = 1000;

/** The options of a `RunFeed`. */
export interface FeedInit {
  readonly sessionId: string;
  readonly store: SessionStore;
  readonly watches: SessionWatches;
  readonly live: LiveSubscriber;
  readonly head: SessionHead;
  readonly runId: string;
  /** The position of the run's first entry. */
  readonly first: number;
}

/**
 * Follows the events of a run after an event id, or from its beginning: recorded events from the log, and live events
 * in between. Null if the run ended before that id.
 *
 * An event id is `seq.claim.delta`: the position of the event's entry (for a live event, of the run's last entry), the
 * claim, and the number of live events since that entry. Ids increase on every server, so a reader that continues after
 * one gets no event twice.
 *
 * @throws {HttpError} `EVENT_ID_UNKNOWN` for an id that no event of the run has; `EVENT_GONE` when its entry was
 * erased.
 */
export async function followRun(init: FeedInit, lastEventId: string | null): Promise<RunFeed | null> {
  const { first, head, watches, runId } = init;
  let run = newRun(runId);
  const end = head.version - 1;
  if (lastEventId === null) {
    const start = { position: { seq: first - 1, delta: 0 }, started: null };
    return new RunFeed(init, run, watches.read(head, first - 1), start);
  }
  const { seq, claim, delta } = positionOf(lastEventId);
  if (seq < first || seq > end) throw unknownId();
  let started: number | null = null;
  for await (const entry of init.store.read(head.header.id, { after: first - 1, before: seq + 1 })) {
    if (entry.seq === seq && entry.type === "erased") {
      throw new HttpError("EVENT_GONE", "What that event said was erased; join without Last-Event-ID.");
    }
    if (run.end !== null) throw unknownId();
    const step: RunStep = stepRun(run, entry, head.header);
    run = step.state;
    if (begins(step.event)) started = entry.seq;
  }
  if (run.claim !== claim) throw unknownId();
  if (run.end !== null) return null;
  return new RunFeed(init, run, watches.read(head, seq), { position: { seq, delta }, started });
}

function positionOf(id: string): EventPosition & { readonly claim: number } {
  const [, seq, claim, delta] = (/^(\d{1,15})\.(\d{1,16})\.(\d{1,15})$/.exec(id) ?? []).map(Number);
  if (seq === undefined || claim === undefined || delta === undefined) throw unknownId();
  return { seq, claim, delta };
}

function unknownId(): HttpError {
  return new HttpError(
    "EVENT_ID_UNKNOWN",
    "The run has no event of that id; join without Last-Event-ID to begin at its first one.",
  );
}

/** An event of a run, with its id and data. */
export interface FedEvent {
  readonly event: WireRunEvent;
  /** The position of its entry; for a live event, of the entry before it. */
  readonly seq: number;
  readonly frame: string;
}

/** The frames of a run's events, unchanged. */
export function framesOf(feed: Pick<RunFeed, "attach" | "take">): FrameSource {
  return {
    attach: (wake) => feed.attach(wake),
    take: async () => (await feed.take())?.map(({ frame }) => frame).join("") ?? null,
  };
}

/** The part of a feed that a writer uses. */
export type WriterFeed = Pick<RunFeed, "attach" | "take" | "questions" | "seen">;

/** Writes the events of a run in the format of a front end. */
export interface RunWriter {
  /** The data to send for these events; null events mean that there are no more. */
  write(fed: readonly FedEvent[] | null, feed: WriterFeed): readonly string[] | Promise<readonly string[]>;
  /** Whether everything was sent, up to the end of the run or an approval. */
  readonly ended: boolean;
}

/** The frames that a writer makes of a run's events. */
export function writtenFrames(feed: WriterFeed, writer: RunWriter): FrameSource {
  return {
    attach: (wake) => feed.attach(wake),
    async take() {
      while (!writer.ended) {
        const fed = await feed.take();
        const written = await writer.write(fed, feed);
        if (written.length > 0) return written.map((data) => `data: ${data}\n\n`).join("");
        if (fed === null) return null;
        // Nothing to send, but more events may be available already.
        if (fed.length === 0) return "";
      }
      return null;
    },
  };
}

/** A reader's position in a run. */
interface FeedStart {
  /** The position of the latest event that the reader has. */
  readonly position: EventPosition;
  /** The position of the last claim's start; null before the first. */
  readonly started: number | null;
}

/** An entry, and its event. */
interface NextEntry {
  readonly seq: number;
  readonly event: WireRunEvent | null;
  /** Whether the run's holder publishes live events, so that they must be sent first. */
  readonly isPublished: boolean;
  readonly claim: number;
}

/** One reader of a run's events. */
export class RunFeed {
  readonly #init: FeedInit;
  readonly #reader: EntryReader;
  readonly #entries: Entry[] = [];
  #run: RunState;
  #next: NextEntry | null = null;
  #position: EventPosition;
  #started: number | null;
  #claim: number;
  #seen: number;
  /** The number of live events up to the position, as the publisher counts them; null if unknown. */
  #count: number | null = null;
  #wake: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #heldSinceMs: number | null = null;
  /** Whether an event has waited in vain for live events of the run; others then do not wait. */
  #unpublished = false;
  /** The live text of the round, if it is known from its beginning. */
  #text: string | null = null;
  /** Whether missing live events of the round were already reported. */
  #isCounted = false;
  #ended = false;

  constructor(init: FeedInit, run: RunState, reader: EntryReader, { position, started }: FeedStart) {
    this.#init = init;
    this.#run = run;
    this.#reader = reader;
    this.#position = position;
    this.#started = started;
    this.#claim = run.claim;
    this.#seen = position.seq;
  }

  /** The position of the latest entry that was read. */
  get seen(): number {
    return this.#seen;
  }

  /** The unanswered questions of the run; none until the reader has processed the entries that existed at first. */
  get questions(): readonly QuestionView[] {
    return this.#seen < this.#init.head.version - 1 ? [] : questionViews(this.#run);
  }

  /** Calls `wake` when there may be more events. Returns a function that stops this. */
  attach(wake: () => void): () => void {
    this.#wake = wake;
    const detach = [this.#reader.attach(wake), this.#init.live.listen(this.#init, wake)];
    return () => {
      clearTimeout(this.#timer);
      for (const end of detach) end();
    };
  }

  /** Returns the available events; none if there are none, null at the end. */
  async take(): Promise<readonly FedEvent[] | null> {
    while (!this.#ended) {
      let isLast = false;
      if (this.#next === null && this.#entries.length === 0) {
        const entries = await this.#reader.take();
        if (entries === null) return null;
        isLast = entries.length === 0;
        this.#entries.push(...entries.map(({ entry }) => entry));
      }
      const fed: FedEvent[] = [];
      const isHeld = !this.#takeEntries(fed);
      if (!this.#ended && !isHeld) fed.push(...this.#live(this.#seen));
      if (fed.length > 0 || isLast || isHeld) return fed;
    }
    return null;
  }

  /** Processes entries in order; false if one has to wait. */
  #takeEntries(fed: FedEvent[]): boolean {
    for (;;) {
      this.#next ??= this.#readNext();
      if (this.#next === null) return true;
      const { seq, event, claim } = this.#next;
      // Live events are sent before the recorded event that follows them.
      fed.push(...this.#live(seq - 1));
      if (this.#waits(this.#next)) return false;
      this.#next = null;
      this.#seen = seq;
      if (event === null) continue;
      fed.push(...this.#dropped(this.#publishedBefore(seq), seq));
      fed.push(...this.#lost(seq, event));
      if (begins(event)) {
        // A reader that joins in the middle counts from the next live event.
        this.#count = seq < this.#init.head.version ? null : 0;
        [this.#started, this.#unpublished] = [seq, false];
      }
      this.#claim = claim;
      const shown = redacted(event);
      fed.push(this.#fed({ seq, delta: 0 }, shown, frameOf(shown)));
      this.#ended = endsRun(event);
      if (this.#ended) return true;
    }
  }

  #readNext(): NextEntry | null {
    const entry = this.#entries.shift();
    if (entry === undefined) return null;
    const { open } = this.#run;
    const { state, event } = stepRun(this.#run, entry, this.#init.head.header);
    this.#run = state;
    // The live events of entries from before the reader joined were published long ago.
    const isPublished = (open?.state === "started" || begins(event)) && entry.seq >= this.#init.head.version;
    return { seq: entry.seq, event, isPublished, claim: state.claim };
  }

  /** Whether an entry must wait for earlier live events. */
  #waits({ seq, event, isPublished }: NextEntry): boolean {
    clearTimeout(this.#timer);
    if (event === null || !isPublished || this.#unpublished || this.#hasReceived(seq, event)) {
      this.#heldSinceMs = null;
      return false;
    }
    this.#heldSinceMs ??= performance.now();
    const leftMs = this.#heldSinceMs + HOLD_MS - performance.now();
    if (leftMs > 0) {
      this.#timer = setTimeout(this.#wake, Math.ceil(leftMs)).unref();
      return true;
    }
    this.#heldSinceMs = null;
    this.#unpublished = (this.#init.live.last(this.#init)?.since ?? -1) < (this.#started ?? 0);
    return false;
  }

  /** Whether all live events before an entry have arrived. */
  #hasReceived(seq: number, event: WireRunEvent): boolean {
    const last = this.#init.live.last(this.#init);
    return last !== null && last.seq >= seq && last.since >= (begins(event) ? seq : (this.#started ?? 0));
  }

  #live(upTo: number): FedEvent[] {
    const fed: FedEvent[] = [];
    for (const notice of this.#init.live.after(this.#init, this.#position)) {
      const { event, text, seq, delta, since, count } = notice;
      if (seq > upTo) break;
      // The previous holder may publish for a moment longer.
      if (since < (this.#started ?? 0)) continue;
      this.#count ??= count - delta + (seq === this.#position.seq ? this.#position.delta : 0);
      fed.push(...this.#dropped(count - 1, seq));
      this.#count = count;
      if (event.type === "model-retry") this.#text = "";
      if (event.type === "text-delta" && this.#text !== null) this.#text += event.text;
      fed.push(this.#fed({ seq, delta }, event, text));
    }
    return fed;
  }

  /** The number of live events before an entry, as far as it is known. */
  #publishedBefore(seq: number): number {
    const { live } = this.#init;
    const isOfClaim = ({ since }: { readonly since: number }): boolean => since >= (this.#started ?? 0) && since < seq;
    const after = live.after(this.#init, this.#position).find((notice) => notice.seq >= seq && isOfClaim(notice));
    if (after !== undefined) return after.count - 1;
    const last = live.last(this.#init);
    return last !== null && last.seq >= seq && isOfClaim(last) ? last.count : 0;
  }

  /**
   * The writer of a round may have died before it published the last live events, and their number is unknown: at least
   * one is then reported as missing.
   */
  #lost(seq: number, event: WireRunEvent): FedEvent[] {
    const [told, isCounted] = [this.#text, this.#isCounted];
    const endsRound = event.type === "round-finished" && !("agent" in event);
    if (endsRound || begins(event)) [this.#text, this.#isCounted] = ["", false];
    // The text of a round starts after the results of earlier calls.
    this.#text ??= "";
    // Live events from before the reader joined went to other readers.
    if (!endsRound || told === null || isCounted || seq < this.#init.head.version) return [];
    if (told === textOf(event.message.content)) return [];
    if (this.#count !== null) this.#count += 1;
    return [this.#missing(1, seq)];
  }

  #dropped(before: number, seq: number): FedEvent[] {
    const count = this.#count === null ? 0 : before - this.#count;
    if (count <= 0) return [];
    this.#count = before;
    this.#isCounted = true;
    return [this.#missing(count, seq)];
  }

  #missing(count: number, seq: number): FedEvent {
    const event: WireRunEvent = { type: "events-dropped", count, runId: this.#init.runId };
    return { event, seq, frame: frameOf(event) };
  }

  #fed(position: EventPosition, event: WireRunEvent, frame: string): FedEvent {
    this.#position = position;
    return { event, seq: position.seq, frame: `id: ${position.seq}.${this.#claim}.${position.delta}\n${frame}` };
  }
}

/** Whether an event marks the start of a claim. */
function begins(event: WireRunEvent | null): boolean {
  return event?.type === "run-started" || event?.type === "group-started";
}

/** Whether an event is the last one of a run. */
function endsRun({ type }: WireRunEvent): boolean {
  return type === "run-finished" || type === "run-failed" || type === "group-finished" || type === "group-failed";
}

/** The unanswered questions of a run. */
export function questionViews({ questions }: RunState): readonly QuestionView[] {
  return questions.map(({ approval: { innerRunId: _inner, following: _following, ...shown }, askedAt, expiresAt }) => ({
    ...shown,
    askedAt,
    ...defined({ expiresAt }),
  }));
}

/** A live event as a frame. */
export function liveFrame(event: WireRunEvent): string {
  return frameOf(redacted(event));
}

/** An event as clients may see it: errors in it reveal nothing about the server. */
function redacted(event: WireRunEvent): WireRunEvent {
  if (event.type === "group-finished" && event.outcome.reason === "agent-failed")
    return { ...event, outcome: { ...event.outcome, error: recordedError(event.outcome.error) } };
  return "error" in event && event.error !== undefined ? { ...event, error: recordedError(event.error) } : event;
}

/** The error of a run, from its log or an event. */
export function recordedError(recorded: unknown): RunError {
  const { code, detail: message } = recordedProblem(recorded);
  const known = (recorded ?? {}) as { readonly message?: unknown; readonly details?: JsonObject };
  const whole = known.message === message && known.details !== undefined;
  return whole ? { code, message, details: known.details } : { code, message };
}

/** An event as a frame without an id. */
function frameOf(event: WireRunEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
