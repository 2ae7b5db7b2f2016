import { type Client, ClientError, type WireRunEvent } from "skein/client";
import { hear, NOTHING_HEARD, problemIn, type RunProblem, type RunState } from "./run-state.ts";

/** How long events are gathered before they are drawn. */
const GATHER_MS = 40;
/** How often the events of a run are begun anew where the server does not have those any more that follow the last one. */
const JOINS_MAX = 5;

/** Who is told what happens in a run. */
export interface RunFollower {
  heard(change: (state: RunState) => RunState): void;
  /** Called when something new is in the log. */
  logged(): void;
  /** Called once, when the run is over, with why it did not come to its end. */
  ended(problem: RunProblem | null): void;
}

/** Follows a run until it is over; the result stops that. */
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
    follower.heard((state) => events.reduce((before, event) => hear(before, event, now), state));
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
          follower.heard(() => NOTHING_HEARD);
          continue;
        }
        // A server that was started anew does not know the run; the log says what became of it.
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
