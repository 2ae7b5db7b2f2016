import { SessionCapacityError } from "../../../session/errors.ts";
import type { Admission } from "../gate/authenticator.ts";
import { HttpError } from "../http-error.ts";

/** How much of a source goes into one piece, about. */
export const FRAME_CHARACTERS_MAX: number = 64 * 1024;

const HEARTBEAT_MS = 15_000;
/** How often it is looked whether those who read streams may still do so. */
const LOOK_MS = 250;
const STREAMS_MAX = 10_000;
const encoder = new TextEncoder();
/** A comment, which readers skip; it keeps proxies from closing a connection that seems idle. */
const HEARTBEAT = encoder.encode(":\n\n");

const HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/** Where the frames of one event stream come from. */
export interface FrameSource {
  /** What is there now, at most about `FRAME_CHARACTERS_MAX`; an empty text when nothing is, null at the end. */
  take(): string | null | Promise<string | null>;
  /** From now on `wake` is called when there may be more; what comes back ends that. */
  attach(wake: () => void): () => void;
}

/** Who reads a stream, and whether they would still be let in. */
export type StreamReader = Pick<Admission, "caller" | "holds">;

/** How the streams of a server are kept. */
export interface EventStreamsOptions {
  /** How many streams a user may have open. */
  readonly streamsPerUser: number;
  readonly heartbeatMs?: number;
}

/**
 * The event streams of a server that are open.
 *
 * - A stream takes from its source only what its client has room for, so that a slow client costs no memory here.
 * - A client that is gone is forgotten at once.
 * - A stream ends within a second when what let its reader in does not any more, or has expired.
 * - One timer serves all of them for each of these.
 */
export class EventStreams {
  readonly #open = new Set<EventStream>();
  readonly #byUser = new Map<string, number>();
  readonly #streamsPerUser: number;
  readonly #heartbeatMs: number;
  #timers: readonly NodeJS.Timeout[] = [];

  constructor({ streamsPerUser, heartbeatMs = HEARTBEAT_MS }: EventStreamsOptions) {
    this.#streamsPerUser = streamsPerUser;
    this.#heartbeatMs = heartbeatMs;
  }

  get size(): number {
    return this.#open.size;
  }

  /**
   * Sends a source as Server-Sent Events to whoever asked for it, for as long as they would be let in.
   *
   * @throws {HttpError} `TOO_MANY_STREAMS`.
   */
  open(source: FrameSource, { method, signal }: Pick<Request, "method" | "signal">, reader: StreamReader): Response {
    // Nobody would read what a client gets that wants the headers only, or that has left already.
    if (method === "HEAD" || signal.aborted) return new Response(null, { headers: HEADERS });
    if (this.#open.size >= STREAMS_MAX) throw new SessionCapacityError("open event streams", STREAMS_MAX);
    const { userId } = reader.caller;
    const own = this.#byUser.get(userId) ?? 0;
    if (own >= this.#streamsPerUser) throw tooMany(this.#streamsPerUser);
    this.#byUser.set(userId, own + 1);
    const stream = new EventStream(source, signal, reader.holds, () => this.#forget(stream, userId));
    this.#open.add(stream);
    if (this.#timers.length === 0) {
      this.#timers = [
        setInterval(() => this.#beat(), this.#heartbeatMs).unref(),
        setInterval(() => this.#look(), LOOK_MS).unref(),
      ];
    }
    // Nothing is read ahead: each piece is taken when the connection can hold it.
    return new Response(new ReadableStream(stream, { highWaterMark: 0 }), { headers: HEADERS });
  }

  /** Ends every stream; clients come back, here or to whoever takes over. */
  close(): void {
    for (const stream of [...this.#open]) stream.end();
  }

  #beat(): void {
    for (const stream of this.#open) stream.beat();
  }

  #look(): void {
    for (const stream of [...this.#open]) if (!stream.holds()) stream.end();
  }

  #forget(stream: EventStream, userId: string): void {
    this.#open.delete(stream);
    const others = (this.#byUser.get(userId) ?? 1) - 1;
    if (others === 0) this.#byUser.delete(userId);
    else this.#byUser.set(userId, others);
    if (this.#open.size > 0) return;
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
  }
}

function tooMany(streamsPerUser: number): HttpError {
  return new HttpError(
    "TOO_MANY_STREAMS",
    `A user may have ${streamsPerUser} event streams open on this server; close one of them first.`,
    { headers: { "retry-after": "5" } },
  );
}

/** One open stream; a source of bytes for its connection. */
class EventStream {
  /** Whether its reader may go on reading. */
  readonly holds: () => boolean;
  readonly #source: FrameSource;
  readonly #signal: AbortSignal;
  readonly #end: () => void = () => this.end();
  readonly #forget: () => void;
  readonly #detach: () => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** The connection has room and the source had nothing. */
  #waiting = false;
  /** The source may have more than when it was last asked. */
  #stale = false;

  constructor(source: FrameSource, signal: AbortSignal, holds: () => boolean, forget: () => void) {
    this.holds = holds;
    this.#source = source;
    this.#signal = signal;
    this.#forget = forget;
    signal.addEventListener("abort", this.#end);
    this.#detach = source.attach(() => this.#wake());
  }

  start(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.#controller = controller;
  }

  async pull(): Promise<void> {
    try {
      await this.#fill();
    } catch {
      // A client that rejoins gets the reason; in the middle of a stream nothing can carry it.
      this.end();
    }
  }

  cancel(): void {
    this.#release();
  }

  end(): void {
    const controller = this.#controller;
    this.#release();
    try {
      controller?.close();
    } catch {
      // It was cancelled at the same moment.
    }
  }

  beat(): void {
    if (!this.#waiting) return;
    this.#waiting = false;
    this.#controller?.enqueue(HEARTBEAT);
  }

  async #fill(): Promise<void> {
    this.#waiting = false;
    do {
      this.#stale = false;
      const frames = await this.#source.take();
      if (this.#controller === null) return;
      if (frames === null) return this.end();
      if (frames !== "") return this.#controller.enqueue(encoder.encode(frames));
    } while (this.#stale);
    this.#waiting = true;
  }

  #wake(): void {
    this.#stale = true;
    if (this.#waiting) void this.pull();
  }

  #release(): void {
    if (this.#controller === null) return;
    this.#controller = null;
    this.#waiting = false;
    this.#signal.removeEventListener("abort", this.#end);
    this.#detach();
    this.#forget();
  }
}
