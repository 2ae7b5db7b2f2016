import { SessionCapacityError } from "../../../session/errors.ts";
import type { Admission } from "../gate/authenticator.ts";
import { HttpError } from "../http-error.ts";

/** The approximate size of a frame in characters. */
export const FRAME_CHARACTERS_MAX: number = 64 * 1024;

const HEARTBEAT_MS = 15_000;
/** How often the permissions of open streams are checked. */
const LOOK_MS = 250;
const STREAMS_MAX = 10_000;
const encoder = new TextEncoder();
/** A comment, which clients ignore; it keeps proxies from closing an idle connection. */
const HEARTBEAT = encoder.encode(":\n\n");

const HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/** The source of the frames of an event stream. */
export interface FrameSource {
  /**
   * Returns the available frames, up to about `FRAME_CHARACTERS_MAX` characters; an empty string if there are none,
   * null at the end.
   */
  take(): string | null | Promise<string | null>;
  /** Calls `wake` when there may be more frames. Returns a function that stops this. */
  attach(wake: () => void): () => void;
}

/** The reader of a stream, and whether the reader still has access. */
export type StreamReader = Pick<Admission, "caller" | "holds">;

/** Options of the event streams of a server. */
export interface EventStreamsOptions {
  /** The most open streams of a user. */
  readonly streamsPerUser: number;
  readonly heartbeatMs?: number;
}

/**
 * The open event streams of a server.
 *
 * - A stream reads from its source only when the connection has room (backpressure), so a slow client needs no memory.
 * - A stream ends immediately when its client disconnects.
 * - A stream ends within a second after its reader loses access.
 * - All streams share one timer for each check.
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
   * Sends a source as Server-Sent Events, as long as the reader has access.
   *
   * @throws {HttpError} `TOO_MANY_STREAMS`.
   */
  open(source: FrameSource, { method, signal }: Pick<Request, "method" | "signal">, reader: StreamReader): Response {
    // The client wants only the headers, or has already disconnected.
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
    // No buffer: each frame is read when the connection can take it.
    return new Response(new ReadableStream(stream, { highWaterMark: 0 }), { headers: HEADERS });
  }

  /** Ends all streams; clients reconnect to this server or another one. */
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

/** An open stream: the byte source of its connection. */
class EventStream {
  /** Whether its reader still has access. */
  readonly holds: () => boolean;
  readonly #source: FrameSource;
  readonly #signal: AbortSignal;
  readonly #end: () => void = () => this.end();
  readonly #forget: () => void;
  readonly #detach: () => void;
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  /** The connection has room, but the source had nothing. */
  #waiting = false;
  /** The source may have more since the last read. */
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
      // A client that reconnects gets the reason as an answer; an open stream cannot carry it.
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
      // The stream was cancelled at the same moment.
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
