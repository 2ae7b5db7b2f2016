import { ClientError } from "./client-error.ts";
import { EventParser, type ParsedEvent } from "./event-parser.ts";
import type { Transport } from "./transport.ts";

const PAUSE_FIRST_MS = 100;
const PAUSE_LAST_MS = 10_000;
/** The server says something at least every 15 seconds, so that a connection that is silent for this long is lost. */
const IDLE_MS = 45_000;

/** How events are followed. */
export interface FollowOptions {
  /** Ends the stream. */
  readonly signal?: AbortSignal;
  /** Begin after the event of this id. */
  readonly lastEventId?: string;
  /** Take a connection for lost that says nothing for this long (default 45,000). */
  readonly idleMs?: number;
}

/**
 * Events as they come, for one reader.
 *
 * - A connection that is lost is made again, after a growing pause, from the last event on: none is lost or repeated.
 * - It ends with the last event, when the signal aborts, and when the reader leaves; it throws a `ClientError` when the
 *   server refuses with a 4xx status (one that says "later" excepted), or cannot be asked with this token.
 */
export interface EventStream<T> extends AsyncIterable<T> {
  /** The id of the latest event, to go on from there later. */
  readonly lastEventId: string | null;
}

/** What is followed. */
export interface Followed<T> extends FollowOptions {
  readonly transport: Transport;
  readonly path: string;
  /** Whether no event follows this one. */
  readonly isLast: (event: T) => boolean;
}

/** Follows the events of a path of the server. */
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

/** Thrown where the server says that nothing follows. */
const ENDED = Symbol("ended");

/** The events of one connection, until it ends. */
async function* connect<T>(
  { transport, path, signal, idleMs = IDLE_MS }: Followed<T>,
  lastEventId: string | null,
): AsyncGenerator<ParsedEvent, void, undefined> {
  const controller = new AbortController();
  const stop = (): void => controller.abort();
  signal?.addEventListener("abort", stop, { once: true });
  let timer = setTimeout(stop, idleMs);
  try {
    const response = await transport.send({
      path,
      headers: { accept: "text/event-stream", ...(lastEventId === null ? {} : { "last-event-id": lastEventId }) },
      signal: controller.signal,
    });
    if (response.status === 204 || response.body === null) throw ENDED;
    const reader = response.body.getReader();
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

/** A refusal that asking again does not change. */
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
