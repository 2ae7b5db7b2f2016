import { shownRun } from "../../../src/session/log/run-fold.ts";
import type { SessionView } from "skein/client";
import { formatTime } from "../transcript/content/format.ts";

/** The state of a session's open run as a sentence, and the possible actions. */
export interface RunBarState {
  readonly text: string;
  /** Whether the user has to act. */
  readonly warns: boolean;
  /** Whether the run can be continued from here. */
  readonly goesOn: boolean;
  /** The run that can be cancelled; null if it already was. */
  readonly cancels: string | null;
}

/** The state of a session's open run; null without one. `followed` is the active run. */
export function barOf(
  { running, openRuns, status }: Pick<SessionView, "running" | "openRuns" | "status">,
  followed: string | null,
  { asks, mayApprove, who }: { readonly asks: boolean; readonly mayApprove: boolean; readonly who: string },
): RunBarState | null {
  const run = openRuns.find(({ runId }) => runId === followed) ?? shownRun(openRuns);
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
    if (run?.state === "requested") return bar("The run waits for its turn …");
    if (asks) return bar(waits);
    return bar(`${who} is working …`);
  }
  if (run === undefined || status === "closed" || status === "expired") return null;
  switch (run.state) {
    case "parked":
      return bar(`${waits} The run continues after it.`, { warns: true });
    case "answered":
      return bar("The question is answered, and the run continues in a moment.", { goesOn: true });
    case "requested":
      return bar(
        run.notBefore === undefined
          ? "A run waits for its turn."
          : `A run waits; it starts at ${formatTime(run.notBefore)} or later.`,
      );
    case "started":
      // An active run is followed after the next reload of the session.
      if (running !== null) return null;
      return run.cancelled === true
        ? bar("The run was cancelled, and its process has ended.")
        : bar("The last run was interrupted before it finished.", { warns: true, goesOn: status === "active" });
  }
}
