import type { SessionHead } from "../../../session/log/fold.ts";
import { LiveSubscriber } from "../../../workers/live-subscriber.ts";
import { noContent, type RouteCall, type ServerApp } from "../route.ts";
import type { ServerServices } from "../server-services.ts";
import { EventStreams } from "./event-streams.ts";
import type { Backlog } from "./request-run.ts";
import { followRun, liveFrame, type RunFeed, type RunWriter, writtenFrames } from "./run-feed.ts";
import { findRun } from "./run-views.ts";
import { SessionWatches } from "./session-watches.ts";
import { RUN_HEADER } from "../../chat-wire.ts";
import { cancelRun } from "./cancel-and-answer.ts";

/** The shared state of all streams of a server's runs. */
export interface RunFeeds {
  readonly streams: EventStreams;
  readonly watches: SessionWatches;
  /** Counts the readers of runs for a front end. */
  readonly readers: ReaderCounts;
  /** Follows the events of a run after an event id, or from its beginning; null if the run ended before that id. */
  follow(head: SessionHead, runId: string, lastEventId: string | null): Promise<RunFeed | null>;
}

/** The operations that front-end routes use from the run routes. */
export interface FrontEndParts {
  readonly backlog: Backlog;
  readonly feeds: RunFeeds;
}

/** Creates the feeds; they end when the server shuts down. */
export function openFeeds({ limits }: ServerApp, services: ServerServices): RunFeeds {
  const { store, drain, queue } = services;
  const streams = new EventStreams(limits);
  const watches = new SessionWatches(store, services.report);
  const live = new LiveSubscriber(queue, liveFrame, services.report);
  drain.addEventListener("abort", () => streams.close(), { once: true });
  drain.addEventListener("abort", () => live.close(), { once: true });
  return {
    streams,
    watches,
    readers: new ReaderCounts(services.cancelWhenLeftMs),
    async follow(head, runId, lastEventId) {
      const first = await findRun(services, head, runId);
      return followRun({ sessionId: head.header.id, store, watches, live, head, runId, first }, lastEventId);
    },
  };
}

/** Counts the readers of each run, and reports a run that all of its readers have left. */
export class ReaderCounts {
  readonly #afterMs: number | null;
  readonly #runs = new Map<string, { readers: number; timer: NodeJS.Timeout | undefined }>();

  /** `afterMs` is the delay before a run without readers is reported; null for never. */
  constructor(afterMs: number | null) {
    this.#afterMs = afterMs;
  }

  /**
   * Counts one more reader. Returns a function that removes this reader; its argument says whether the reader left before the
   * end. `stop` is called if the last reader left so, and no other has joined within `afterMs`.
   */
  join(key: string, stop: () => void): (hasLeft: boolean) => void {
    const afterMs = this.#afterMs;
    if (afterMs === null) return () => {};
    const run = this.#runs.get(key) ?? { readers: 0, timer: undefined };
    this.#runs.set(key, run);
    run.readers += 1;
    clearTimeout(run.timer);
    return (hasLeft) => {
      run.readers -= 1;
      if (run.readers > 0) return;
      const late = (): void => {
        this.#runs.delete(key);
        stop();
      };
      if (hasLeft) run.timer = setTimeout(late, afterMs).unref();
      else this.#runs.delete(key);
    };
  }
}

/**
 * Streams a run to a client. The run continues after the client disconnects, unless the server cancels runs that all
 * readers have left.
 */
export async function streamRun(
  services: ServerServices,
  { streams, readers, follow }: RunFeeds,
  { as, admission, request }: Pick<RouteCall<unknown, unknown>, "as" | "admission" | "request">,
  { head, runId, writer }: { readonly head: SessionHead; readonly runId: string; readonly writer: RunWriter },
): Promise<Response> {
  const feed = await follow(head, runId, null);
  if (feed === null) return noContent();
  const sessionId = head.header.id;
  const stop = (): void => {
    if (services.drain.aborted) return;
    cancelRun(services, sessionId, { runId, reason: "Everyone who read it has left." }, as).catch(services.report);
  };
  const join = () => readers.join(JSON.stringify([sessionId, runId]), stop);
  const { take, attach } = writtenFrames(feed, writer);
  const joined = (wake: () => void): (() => void) => {
    const [leave, detach] = [join(), attach(wake)];
    return () => {
      detach();
      leave(!writer.ended);
    };
  };
  const response = streams.open({ take, attach: joined }, request, admission);
  // A client that has already disconnected does not count as a reader.
  if (request.signal.aborted) join()(true);
  response.headers.set(RUN_HEADER, encodeURIComponent(runId));
  return response;
}
