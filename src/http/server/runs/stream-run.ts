import { RUN_HEADER } from "../../chat-wire.ts";
import type { RouteCall } from "../route.ts";
import type { ServerServices } from "../server-services.ts";
import type { FrameSource } from "./event-streams.ts";
import type { RunFeeds } from "./run-feeds.ts";
import { cancelRun } from "./speak-to-run.ts";

/** What a front end is told of a run. */
export interface ToldRun {
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
