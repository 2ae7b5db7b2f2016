import { type Client, ClientError, type WireRunEvent } from "skein/client";
import { NO_EVENTS, problemIn, stepRun, type RunProblem, type RunState } from "./run-state.ts";

/** How long events are buffered before a redraw. */
const GATHER_MS = 40;
/** How often the event stream is restarted if the server no longer has the events after the last one. */
const JOINS_MAX = 5;

/** The callbacks of a followed run. */
export interface RunFollower {
  update(change: (state: RunState) => RunState): void;
  /** Called after new entries in the log. */
  logged(): void;
  /** Called once at the end of the run, with the problem if it failed. */
  ended(problem: RunProblem | null): void;
}

/** Follows a run to its end; returns a function that stops following. */
export function followRun(client: Client, sessionId: string, runId: string, follower: RunFollower): () => void {
  const controller = new AbortController();
  const { signal } = controller;
  let gathered: WireRunEvent[] = [];
  let timer: ReturnType<typeof setTimeout> | null = null;
  const tell = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    const events = gathered;
    gathered = [];
    const now = performance.now();
    follower.update((state) => events.reduce((before, event) => stepRun(before, event, now), state));
    if (events.some(({ type }) => type === "round-finished" || type === "tool-finished")) follower.logged();
  };
  const listen = async (): Promise<RunProblem | null> => {
    let last: WireRunEvent | null = null;
    for await (const event of client.runs.events(sessionId, runId, { signal })) {
      gathered.push(event);
      timer ??= setTimeout(tell, GATHER_MS);
      last = event;
    }
    return last === null ? null : problemIn(last);
  };
  const follow = async (): Promise<void> => {
    let problem: RunProblem | null = null;
    for (let joins = 1; !signal.aborted; joins++) {
      try {
        problem = await listen();
        break;
      } catch (error) {
        if (joins < JOINS_MAX && isGap(error)) {
          gathered = [];
          follower.update(() => NO_EVENTS);
          continue;
        }
        // A restarted server does not know the run; the log has its result.
        problem = error instanceof ClientError && error.problem !== null && error.status !== 404 ? error : null;
        break;
      }
    }
    if (signal.aborted) return;
    tell();
    follower.ended(problem);
  };
  void follow();
  return () => {
    controller.abort();
    if (timer !== null) clearTimeout(timer);
  };
}

function isGap(error: unknown): boolean {
  return error instanceof ClientError && ["EVENT_GONE", "EVENT_ID_UNKNOWN"].includes(error.code);
}
