import type { RunEvent } from "../../../agent/run-event.ts";
import type { SessionHead } from "../../../session/fold.ts";
import { noContent, type RouteCall } from "../route.ts";
import type { ServerServices } from "../server-services.ts";
import type { FrameSource } from "./event-streams.ts";
import type { RunFeed } from "./run-feed.ts";
import type { RunFeeds } from "./run-feeds.ts";
import { cancelRun } from "./speak-to-run.ts";

/** Tells the events of a run in the words of a front end. What it returns is sent as JSON, one event of the stream each. */
export interface AnswerTeller {
  /** Whether nothing follows what it has told. */
  readonly ended: boolean;
  begin(): readonly object[];
  take(event: RunEvent): readonly object[];
  /** Whether nothing follows before one of these calls, of which all that wait are given, has a person's word. */
  waitsFor(callIds: readonly string[]): boolean;
  /** Ends it where the run waits. */
  pause(): readonly object[];
}

/**
 * Streams a run from its beginning to whoever sent a request, up to where it ends or waits for a person's word. The run
 * goes on when its reader leaves, unless the server is to stop those that everyone has left. `end` is the stream's last word.
 */
export type StreamAnswer = (
  call: Pick<RouteCall<unknown, unknown>, "as" | "admission" | "request">,
  head: SessionHead,
  run: { readonly runId: string; readonly teller: AnswerTeller; readonly end?: string },
) => Promise<Response>;

/** Opens the streams of front ends on those of runs. */
export function openAnswers(services: ServerServices, { follow, streams, left }: RunFeeds): StreamAnswer {
  return async ({ as, admission, request }, head, { runId, teller, end = "" }) => {
    const sessionId = head.header.id;
    const feed = await follow(head, runId, null);
    if (feed === null) return noContent();
    const stop = (): void => {
      if (services.drain.aborted) return;
      cancelRun(services, sessionId, { runId, reason: "Everyone who read it has left." }, as).catch(services.report);
    };
    const onLeft = left.join(JSON.stringify([sessionId, runId]), stop);
    const source = new AnswerSource({ feed, teller, end, onLeft });
    const response = streams.open(source, request, admission);
    if (request.signal.aborted) source.leave();
    return response;
  };
}

interface AnswerInit {
  readonly feed: RunFeed;
  readonly teller: AnswerTeller;
  readonly end: string;
  readonly onLeft: () => void;
}

class AnswerSource implements FrameSource {
  readonly #init: AnswerInit;
  #begun = false;
  #done = false;
  #left = false;

  constructor(init: AnswerInit) {
    this.#init = init;
  }

  attach(wake: () => void): () => void {
    const detach = this.#init.feed.attach(wake);
    return () => {
      detach();
      this.leave();
    };
  }

  leave(): void {
    if (!this.#left && !this.#done) this.#init.onLeft();
    this.#left = true;
  }

  async take(): Promise<string | null> {
    if (this.#done) return null;
    const { feed, teller, end } = this.#init;
    const told = this.#begun ? [] : [...teller.begin()];
    this.#begun = true;
    // What makes no event, such as what the reader has already, is no reason to wait for more.
    for (let more = true; more && !this.#done; ) {
      const fed = await feed.take();
      for (const { event } of fed ?? []) if (!teller.ended) told.push(...teller.take(event as RunEvent));
      if (!teller.ended && teller.waitsFor(feed.questions.map(({ callId }) => callId))) told.push(...teller.pause());
      this.#done = fed === null || teller.ended;
      more = fed !== null && fed.length > 0 && told.length === 0;
    }
    const frames = [...told.map((event) => JSON.stringify(event)), ...(this.#done && end !== "" ? [end] : [])];
    return frames.length === 0 && this.#done ? null : frames.map((data) => `data: ${data}\n\n`).join("");
  }
}
