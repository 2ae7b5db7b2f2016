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
 * How long an event of the log waits for what was told live before it. What is told goes in batches, over a queue, and the
 * log is often quicker.
 */
const HOLD_MS = 1000;

/** What it takes to follow a run. */
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
 * The events of a run after an id, or from its beginning: what lasts from the log, and between it what is told live.
 * Null when the run has ended there.
 *
 * An id is `seq.claim.delta`: the entry that the event is made from, or the run's last entry when it was told live, the
 * claim that the run was in, and how many events were told live since that entry. Ids rise, whichever server gives them, so
 * that whoever goes on after one gets nothing twice.
 *
 * @throws {HttpError} `EVENT_ID_UNKNOWN` for an id that no event of the run has; `EVENT_GONE` when its entry was erased.
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

/** An event of a run, and how it is sent. */
export interface FedEvent {
  readonly event: WireRunEvent;
  /** The entry that it is made from, or after which it was told live. */
  readonly seq: number;
  readonly frame: string;
}

/** The events of a run as they are. */
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
  /** The data of what is sent for some events; they are null once there are no more. */
  write(fed: readonly FedEvent[] | null, feed: WriterFeed): readonly string[] | Promise<readonly string[]>;
  /** Whether all was told, up to where the run ends or waits for a person's word. */
  readonly ended: boolean;
}

/** The events of a run as a writer tells them. */
export function writtenFrames(feed: WriterFeed, writer: RunWriter): FrameSource {
  return {
    attach: (wake) => feed.attach(wake),
    async take() {
      while (!writer.ended) {
        const fed = await feed.take();
        const written = await writer.write(fed, feed);
        if (written.length > 0) return written.map((data) => `data: ${data}\n\n`).join("");
        if (fed === null) return null;
        // What is not sent is no reason to wait for more.
        if (fed.length === 0) return "";
      }
      return null;
    },
  };
}

/** Where a reader is in a run. */
interface FeedStart {
  /** The latest event that the reader has. */
  readonly position: EventPosition;
  /** The entry with which whoever has the run began; null before anyone has. */
  readonly started: number | null;
}

/** An entry, and what it tells of the run. */
interface NextEntry {
  readonly seq: number;
  readonly event: WireRunEvent | null;
  /** Whether whoever has the run tells of it, so that they tell first what came before. */
  readonly isTold: boolean;
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
  /** How many events were told live up to the position, as whoever has the run counts them; null where that is not known. */
  #count: number | null = null;
  #wake: () => void = () => {};
  #timer: NodeJS.Timeout | undefined;
  #heldSinceMs: number | null = null;
  /** Whether nobody told anything about the run for as long as an event waited; no other one waits then. */
  #untold = false;
  /** What was told live of the round, where that is known from its beginning. */
  #text: string | null = null;
  /** Whether something of the round was said to be missing. */
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

  /** The latest entry of the session that was looked at. */
  get seen(): number {
    return this.#seen;
  }

  /** What the run asks and nobody has answered; nothing while the reader has not come to what was there at first. */
  get questions(): readonly QuestionView[] {
    return this.#seen < this.#init.head.version - 1 ? [] : questionViews(this.#run);
  }

  /** From now on `wake` is called when there may be more; what comes back ends that. */
  attach(wake: () => void): () => void {
    this.#wake = wake;
    const detach = [this.#reader.attach(wake), this.#init.live.listen(this.#init, wake)];
    return () => {
      clearTimeout(this.#timer);
      for (const end of detach) end();
    };
  }

  /** What is there now; nothing when nothing is, null at the end. */
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

  /** Takes entries one after the other; false where one has to wait. */
  #takeEntries(fed: FedEvent[]): boolean {
    for (;;) {
      this.#next ??= this.#readNext();
      if (this.#next === null) return true;
      const { seq, event, claim } = this.#next;
      // An event that was told live goes before what the log says after it, as it was told before that was written.
      fed.push(...this.#live(seq - 1));
      if (this.#waits(this.#next)) return false;
      this.#next = null;
      this.#seen = seq;
      if (event === null) continue;
      fed.push(...this.#dropped(this.#toldBefore(seq), seq));
      fed.push(...this.#lost(seq, event));
      if (begins(event)) {
        // Who comes in the middle counts from what is told next.
        this.#count = seq < this.#init.head.version ? null : 0;
        [this.#started, this.#untold] = [seq, false];
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
    // What was there when the reader came is long told.
    const isTold = (open?.state === "started" || begins(event)) && entry.seq >= this.#init.head.version;
    return { seq: entry.seq, event, isTold, claim: state.claim };
  }

  /** Whether an entry has to wait for what was told live before it. */
  #waits({ seq, event, isTold }: NextEntry): boolean {
    clearTimeout(this.#timer);
    if (event === null || !isTold || this.#untold || this.#hasHeard(seq, event)) {
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
    this.#untold = (this.#init.live.last(this.#init)?.since ?? -1) < (this.#started ?? 0);
    return false;
  }

  /** Whether whoever has the run has told all that came before an entry. */
  #hasHeard(seq: number, event: WireRunEvent): boolean {
    const last = this.#init.live.last(this.#init);
    return last !== null && last.seq >= seq && last.since >= (begins(event) ? seq : (this.#started ?? 0));
  }

  #live(upTo: number): FedEvent[] {
    const fed: FedEvent[] = [];
    for (const notice of this.#init.live.after(this.#init, this.#position)) {
      const { event, text, seq, delta, since, count } = notice;
      if (seq > upTo) break;
      // Who had the run before may go on to tell of it for a moment.
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

  /** How many events were told live before an entry, as far as that is known. */
  #toldBefore(seq: number): number {
    const { live } = this.#init;
    const isOurs = ({ since }: { readonly since: number }): boolean => since >= (this.#started ?? 0) && since < seq;
    const after = live.after(this.#init, this.#position).find((notice) => notice.seq >= seq && isOurs(notice));
    if (after !== undefined) return after.count - 1;
    const last = live.last(this.#init);
    return last !== null && last.seq >= seq && isOurs(last) ? last.count : 0;
  }

  /**
   * Who has written a round may have died before its last words were published, and nobody knows how many those are: at
   * least one is said to be missing then.
   */
  #lost(seq: number, event: WireRunEvent): FedEvent[] {
    const [told, isCounted] = [this.#text, this.#isCounted];
    const endsRound = event.type === "round-finished" && !("agent" in event);
    if (endsRound || begins(event)) [this.#text, this.#isCounted] = ["", false];
    // The text of a round follows the results of the calls before it.
    this.#text ??= "";
    // What was there when the reader came was told to others.
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

/** Whether an event says that someone has the run from here on. */
function begins(event: WireRunEvent | null): boolean {
  return event?.type === "run-started" || event?.type === "group-started";
}

/** Whether no event of a run follows this one. */
function endsRun({ type }: WireRunEvent): boolean {
  return type === "run-finished" || type === "run-failed" || type === "group-finished" || type === "group-failed";
}

/** What a run asks and nobody has answered. */
export function questionViews({ questions }: RunState): readonly QuestionView[] {
  return questions.map(({ approval: { innerRunId: _inner, following: _following, ...shown }, askedAt, expiresAt }) => ({
    ...shown,
    askedAt,
    ...defined({ expiresAt }),
  }));
}

/** A live event as a part of a stream. */
export function liveFrame(event: WireRunEvent): string {
  return frameOf(redacted(event));
}

/** An event as clients get it: an error in it names nothing of the server. */
function redacted(event: WireRunEvent): WireRunEvent {
  if (event.type === "group-finished" && event.outcome.reason === "agent-failed")
    return { ...event, outcome: { ...event.outcome, error: recordedError(event.outcome.error) } };
  return "error" in event && event.error !== undefined ? { ...event, error: recordedError(event.error) } : event;
}

/** How a run failed, from what its log or an event has of it. */
export function recordedError(recorded: unknown): RunError {
  const { code, detail: message } = recordedProblem(recorded);
  const known = (recorded ?? {}) as { readonly message?: unknown; readonly details?: JsonObject };
  const whole = known.message === message && known.details !== undefined;
  return whole ? { code, message, details: known.details } : { code, message };
}

/** An event as a part of a stream, without its id. */
function frameOf(event: WireRunEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
}
