import type { SessionHead } from "../../../session/log/fold.ts";
import { LiveHearer } from "../../../workers/live-hearer.ts";
import type { ServerApp } from "../route.ts";
import type { ServerServices } from "../server-services.ts";
import { EventStreams } from "./event-streams.ts";
import { LeftRuns } from "./left-runs.ts";
import { followRun, type RunFeed } from "./run-feed.ts";
import { findRun, storyAbout } from "./run-views.ts";
import { SessionWatches } from "./session-watches.ts";
import { liveFrame } from "./wire-event.ts";

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
