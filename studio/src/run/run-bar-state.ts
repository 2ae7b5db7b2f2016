import type { SessionView } from "skein/client";
import { formatTime } from "../transcript/content/format.ts";

/** How the open run of a session stands, in a sentence, and what can be done about it. */
export interface RunBarState {
  readonly text: string;
  /** Whether someone has to do something. */
  readonly warns: boolean;
  /** Whether it can be gone on with from here. */
  readonly goesOn: boolean;
  /** The run that can be told to stop; null where it was already. */
  readonly cancels: string | null;
}

/** How the open run of a session stands; null where none is open. `followed` is the run that is at work. */
export function barOf(
  { running, openRuns, status }: Pick<SessionView, "running" | "openRuns" | "status">,
  followed: string | null,
  { asks, mayApprove, who }: { readonly asks: boolean; readonly mayApprove: boolean; readonly who: string },
): RunBarState | null {
  const run = openRuns.find(({ runId }) => runId === followed) ?? firstOf(openRuns);
  const waits = `A call waits for ${mayApprove ? "your" : "someone's"} approval.`;
  const bar = (text: string, rest: Partial<RunBarState> = {}): RunBarState => ({
    text,
    warns: false,
    goesOn: false,
    cancels: run?.cancelled === true ? null : (run?.runId ?? followed),
    ...rest,
  });
  if (followed !== null) {
    if (run?.cancelled === true) return bar("The run is being stopped …");
    if (run?.state === "requested") return bar("The run waits its turn …");
    if (asks) return bar(waits);
    return bar(`${who} is working …`);
  }
  if (run === undefined || status === "closed" || status === "expired") return null;
  switch (run.state) {
    case "parked":
      return bar(`${waits} The run goes on after it.`, { warns: true });
    case "answered":
      return bar("The question has its answer, and the run goes on in a moment.", { goesOn: true });
    case "requested":
      return bar(
        run.notBefore === undefined
          ? "A run waits its turn."
          : `A run waits; it begins at ${formatTime(run.notBefore)} or later.`,
      );
    case "started":
      // Whoever has the session is heard of by the next look at it.
      if (running !== null) return null;
      return run.cancelled === true
        ? bar("The run was cancelled, and its process is gone.")
        : bar("The last run was interrupted before it was done.", { warns: true, goesOn: status === "active" });
  }
}

/** The run that has begun, else the first that waits. */
function firstOf(openRuns: SessionView["openRuns"]): SessionView["openRuns"][number] | undefined {
  return openRuns.find(({ state }) => state !== "requested") ?? openRuns[0];
}
