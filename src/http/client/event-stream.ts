import { ClientError } from "./client-error.ts";
import { EventParser, type ParsedEvent } from "./event-parser.ts";
import type { Transport } from "./transport.ts";

const PAUSE_FIRST_MS = 100;
const PAUSE_LAST_MS = 10_000;
/** The server sends at least one byte every 15 seconds, so a connection without data for this long is lost. */
const IDLE_MS = 45_000;

/** How a stream of events is read. */
export interface FollowOptions {
  /** Ends the stream. */
  readonly signal?: AbortSignal;
  /** Starts after the event with this id. */
  readonly lastEventId?: string;
  /** How long a connection may be without data before it counts as lost (default 45,000). */
  readonly idleMs?: number;
}

/**
 * A live stream of events, for one reader.
 *
 * - A lost connection is opened again, with backoff, after the last event received: no event is lost or repeated.
 * - It ends after the last event, when the signal aborts, and when the reader stops. It throws a `ClientError` if the server
 *   refuses with a 4xx status other than 408 and 429, or if the token is invalid.
 */
export interface EventStream<T> extends AsyncIterable<T> {
  /** The id of the latest event, from which a later stream can continue. */
  readonly lastEventId: string | null;
}

/** The stream to read. */
export interface Followed<T> extends FollowOptions {
  readonly transport: Transport;
  readonly path: string;
  /** True for an event that ends the stream. */
  readonly isLast: (event: T) => boolean;
}

/** Reads the events of a path of the server, and reconnects if the connection is lost. */
export function followEvents<T>(followed: Followed<T>): EventStream<T> {
  const position = { lastEventId: followed.lastEventId ?? null };
  return {
    get lastEventId() {
      return position.lastEventId;
    },
    [Symbol.asyncIterator]: () => follow(followed, position),
  };
}

interface Position {
  lastEventId: string | null;
}

async function* follow<T>(followed: Followed<T>, position: Position): AsyncGenerator<T, void, undefined> {
  const { signal, isLast } = followed;
  const isAborted = (): boolean => signal?.aborted === true;
  for (let failures = 0; !isAborted(); failures++) {
    let retryAfterMs: number | null = null;
    try {
      for await (const { id, data } of connect(followed, position.lastEventId)) {
        failures = 0;
        const event = data === null ? null : (JSON.parse(data) as T);
        position.lastEventId = id ?? position.lastEventId;
        if (event === null) continue;
        yield event;
        if (isLast(event)) return;
      }
    } catch (error) {
      if (isAborted() || error === ENDED) return;
      if (error instanceof ClientError && isFinal(error)) throw error;
      retryAfterMs = error instanceof ClientError ? error.retryAfterMs : null;
    }
    const pauseMs = Math.min(PAUSE_LAST_MS, PAUSE_FIRST_MS * 2 ** failures);
    await pause(retryAfterMs ?? pauseMs * (0.5 + Math.random() / 2), signal);
  }
}

/** Thrown when the server reports the end of the stream (status 204). */
const ENDED = Symbol("ended");

/** The events of one connection, until it is closed. */
async function* connect<T>(
  { transport, path, signal, idleMs = IDLE_MS }: Followed<T>,
  lastEventId: string | null,
): AsyncGenerator<ParsedEvent, void, undefined> {
  const controller = new AbortController();
  let reader: ReadableStreamDefaultReader<Uint8Array> | undefined;
  const stop = (): void => {
    controller.abort();
    // A `fetch` may ignore an abort once it has answered.
    reader?.cancel().catch(() => {});
  };
  signal?.addEventListener("abort", stop, { once: true });
  let timer = setTimeout(stop, idleMs);
  try {
    const response = await transport.send({
      path,
      headers: { accept: "text/event-stream", ...(lastEventId === null ? {} : { "last-event-id": lastEventId }) },
      signal: controller.signal,
    });
    if (response.status === 204 || response.body === null) throw ENDED;
    reader = response.body.getReader();
    const decoder = new TextDecoder();
    const parser = new EventParser();
    while (true) {
      const { done, value } = await reader.read();
      clearTimeout(timer);
      if (done) return;
      yield* parser.push(decoder.decode(value, { stream: true }));
      timer = setTimeout(stop, idleMs);
    }
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
    controller.abort();
  }
}

/** True for an error that a retry would not change. */
function isFinal({ code, status }: ClientError): boolean {
  if (status === null) return code === "INVALID_OPTION";
  return status >= 400 && status < 500 && status !== 408 && status !== 429;
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}
