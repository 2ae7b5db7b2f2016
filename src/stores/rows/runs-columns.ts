import type { SessionHead } from "../../session/log/fold.ts";
import { type RunsIndex, runsIndexOf, type RunsWord } from "../../session/log/open-runs.ts";

/** What the row of a session tells listings of its open runs. */
export interface RunsColumns {
  /** Which kinds there are, as a sum of `RUNS_BITS`; null where no run is open. */
  readonly runs: number | null;
  /** From when on something is to be done about one that nobody has; null means never. */
  readonly due: string | null;
}

/** The kinds of open runs that sessions are found by. */
export type RunsKind = Exclude<keyof RunsIndex, "due">;

/** The bit of each kind. */
export const RUNS_BITS: Readonly<Record<RunsKind, number>> = { requested: 1, started: 2, parked: 4 };

/** The columns of a session's row that tell of its open runs. */
export function runsColumns({ openRuns }: SessionHead): RunsColumns {
  const { due, ...kinds } = runsIndexOf(openRuns);
  let runs = 0;
  for (const kind of Object.keys(RUNS_BITS) as RunsKind[]) if (kinds[kind]) runs += RUNS_BITS[kind];
  return { runs: runs === 0 ? null : runs, due };
}

/** Whether two heads of a session have the same columns, which most appends do not even have to look at. */
export function sameRuns(before: SessionHead, after: SessionHead): boolean {
  if (before.openRuns === after.openRuns) return true;
  const [earlier, later] = [runsColumns(before), runsColumns(after)];
  return earlier.runs === later.runs && earlier.due === later.due;
}

/** The kind of run that a word asks for; whether someone has a started one, only its lease tells. */
export function kindOf(word: RunsWord): RunsKind {
  if (word === "asking") return "parked";
  return word === "requested" ? word : "started";
}
