import type { SessionHead } from "../../../session/log/fold.ts";
import { LiveHearer } from "../../../workers/live-hearer.ts";
import type { ServerApp, RouteCall } from "../route.ts";
import type { ServerServices } from "../server-services.ts";
import { EventStreams, type FrameSource } from "./event-streams.ts";
import { followRun, type RunFeed, liveFrame } from "./run-feed.ts";
import { findRun, storyAbout } from "./run-views.ts";
import { SessionWatches } from "./session-watches.ts";
import { RUN_HEADER } from "../../chat-wire.ts";
import { cancelRun } from "./speak-to-run.ts";

/** What the streams of a server's runs share. */
export interface RunFeeds {
  readonly streams: EventStreams;
  readonly watches: SessionWatches;
  /** Who reads runs for a front end. */
  readonly left: LeftRuns;
  /** The events of a run after an id, or from its beginning; null when the run has ended there. */
  follow(head: SessionHead, runId: string, lastEventId: string | null): Promise<RunFeed | null>;
}

/** Opens them; they end when the server shuts down. */
export function openFeeds({ limits }: ServerApp, services: ServerServices): RunFeeds {
  const { store, drain, bell } = services;
  const streams = new EventStreams(limits);
  const watches = new SessionWatches(store, services.report);
  const live = new LiveHearer(bell, liveFrame, services.report);
  drain.addEventListener("abort", () => streams.close(), { once: true });
  drain.addEventListener("abort", () => live.close(), { once: true });
  return {
    streams,
    watches,
    left: new LeftRuns(services.leftMs),
    async follow(head, runId, lastEventId) {
      const first = await findRun(services, head, runId);
      const init = { ...storyAbout(services, head), store, watches, live, head, runId, first };
      return followRun(init, lastEventId);
    },
  };
}

/** Runs that somebody reads, and those that everybody has left. */
export class LeftRuns {
  readonly #afterMs: number | null;
  readonly #runs = new Map<string, { readers: number; timer: NodeJS.Timeout | undefined }>();

  /** Without a time, nothing happens when everybody has left. */
  constructor(afterMs: number | null) {
    this.#afterMs = afterMs;
  }

  /**
   * One more reads a run. What comes back says that they do no longer, and whether they have left, or had read it all;
   * `stop` is called when the last one has left and nobody has come since.
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

/** What a front end is told of a run. */
interface ToldRun {
  readonly sessionId: string;
  readonly runId: string;
  readonly frames: FrameSource;
  /** Whether all was told, up to where the run ends or waits for a person's word. */
  readonly isDone: () => boolean;
}

/** Streams a run to whoever sent a request. It goes on when they leave, unless the server stops what everyone has left. */
export function streamRun(
  services: ServerServices,
  { streams, left }: RunFeeds,
  { as, admission, request }: Pick<RouteCall<unknown, unknown>, "as" | "admission" | "request">,
  { sessionId, runId, frames, isDone }: ToldRun,
): Response {
  const stop = (): void => {
    if (services.drain.aborted) return;
    cancelRun(services, sessionId, { runId, reason: "Everyone who read it has left." }, as).catch(services.report);
  };
  const join = () => left.join(JSON.stringify([sessionId, runId]), stop);
  const attach = (wake: () => void): (() => void) => {
    const [leave, detach] = [join(), frames.attach(wake)];
    return () => {
      detach();
      leave(!isDone());
    };
  };
  const response = streams.open({ take: () => frames.take(), attach }, request, admission);
  // Who has left already did not begin to read.
  if (request.signal.aborted) join()(true);
  response.headers.set(RUN_HEADER, encodeURIComponent(runId));
  return response;
}
