import type { SessionHead } from "../../../session/log/fold.ts";
import type { SessionStore } from "../../../session/store.ts";
import type { EventPosition } from "../../../workers/live-event.ts";
import type { LiveHearer } from "../../../workers/live-hearer.ts";
import type { WireRunEvent } from "../../run-wire.ts";
import { HttpError } from "../http-error.ts";
import type { FrameSource } from "./event-streams.ts";
import { RunStory, type StoryAbout } from "./run-story.ts";
import type { EntryReader, SessionWatches } from "./session-watches.ts";
import type { RunError } from "../../../agent/run-error.ts";
import type { JsonObject } from "../../../internal/json.ts";
import { recordedProblem } from "../problem.ts";

/** What it takes to follow a run. */
export interface FeedInit extends StoryAbout {
  readonly store: SessionStore;
  readonly watches: SessionWatches;
  readonly live: LiveHearer;
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
  const story = new RunStory(init.runId, init);
  const { first, head, watches } = init;
  const end = head.version - 1;
  if (lastEventId === null) {
    return new RunFeed(init, story, watches.read(head.header.id, first - 1, end), { seq: first - 1, delta: 0 });
  }
  const { seq, claim, delta } = positionOf(lastEventId);
  if (seq < first || seq > end) throw unknownId();
  for await (const entry of init.store.read(head.header.id, { after: first - 1, before: seq + 1 })) {
    if (entry.seq === seq && entry.type === "erased") {
      throw new HttpError("EVENT_GONE", "What that event said was erased; join without Last-Event-ID.");
    }
    if (story.end !== null) throw unknownId();
    story.take(entry);
  }
  if (story.claim !== claim) throw unknownId();
  if (story.end !== null) return null;
  return new RunFeed(init, story, watches.read(head.header.id, seq, end), { seq, delta });
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

/** What a writer needs of the run that it tells of. */
export type ToldFeed = Pick<RunFeed, "attach" | "take" | "questions" | "seen">;

/** Tells a front end of a run, in the words of that. */
export interface RunWriter {
  /** The data of what is sent for some events; they are null once there are no more. */
  write(fed: readonly FedEvent[] | null, feed: ToldFeed): readonly string[] | Promise<readonly string[]>;
  /** Whether all was told, up to where the run ends or waits for a person's word. */
  readonly ended: boolean;
}

/** The events of a run as a writer tells them. */
export function writtenFrames(feed: ToldFeed, writer: RunWriter): FrameSource {
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

/** One reader of a run's events. */
export class RunFeed {
  readonly #init: FeedInit;
  readonly #story: RunStory;
  readonly #reader: EntryReader;
  /** The latest event that the reader has. */
  #position: EventPosition;
  #seen: number;

  constructor(init: FeedInit, story: RunStory, reader: EntryReader, position: EventPosition) {
    this.#init = init;
    this.#story = story;
    this.#reader = reader;
    this.#position = position;
    this.#seen = position.seq;
  }

  /** The latest entry of the session that was looked at. */
  get seen(): number {
    return this.#seen;
  }

  /** What the run asks and nobody has answered; nothing while the reader has not come to what was there at first. */
  get questions(): RunStory["questions"] {
    return this.#seen < this.#init.head.version - 1 ? [] : this.#story.questions;
  }

  /** From now on `wake` is called when there may be more; what comes back ends that. */
  attach(wake: () => void): () => void {
    const detach = [this.#reader.attach(wake), this.#init.live.listen(this.#init, wake)];
    return () => {
      for (const end of detach) end();
    };
  }

  /** What is there now; nothing when nothing is, null at the end. */
  async take(): Promise<readonly FedEvent[] | null> {
    while (this.#story.end === null) {
      const entries = await this.#reader.take();
      if (entries === null) return null;
      const fed: FedEvent[] = [];
      for (const { entry } of entries) {
        // An event that was told live goes before what the log says after it, as it was told before that was written.
        fed.push(...this.#live(entry.seq - 1));
        this.#seen = entry.seq;
        const event = this.#story.take(entry);
        if (event !== null) fed.push(this.#fed({ seq: entry.seq, delta: 0 }, event, frameOf(event)));
      }
      if (this.#story.end === null) fed.push(...this.#live(this.#seen));
      if (fed.length > 0 || entries.length === 0) return fed;
    }
    return null;
  }

  #live(upTo: number): FedEvent[] {
    const fed: FedEvent[] = [];
    for (const { event, text, ...position } of this.#init.live.after(this.#init, this.#position)) {
      if (position.seq > upTo) break;
      const before = position.seq === this.#position.seq ? this.#position.delta : 0;
      const count = position.delta - before - 1;
      if (count > 0) {
        const dropped: WireRunEvent = { type: "events-dropped", count, runId: this.#init.runId };
        fed.push({ event: dropped, seq: position.seq, frame: frameOf(dropped) });
      }
      fed.push(this.#fed(position, event, text));
    }
    return fed;
  }

  #fed(position: EventPosition, event: WireRunEvent, frame: string): FedEvent {
    this.#position = position;
    return { event, seq: position.seq, frame: `id: ${position.seq}.${this.#story.claim}.${position.delta}\n${frame}` };
  }
}

/** An event that was told live as a part of a stream: an error in it names nothing of the server. */
export function liveFrame(event: WireRunEvent): string {
  return frameOf(
    "error" in event && event.error !== undefined ? { ...event, error: recordedError(event.error) } : event,
  );
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
