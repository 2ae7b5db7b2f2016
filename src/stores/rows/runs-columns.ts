import type { SessionHead } from "../../session/log/fold.ts";
import { type RunsIndex, runsIndexOf, type RunsCondition } from "../../session/log/open-runs.ts";

/** The columns of a session's row by which listings find it by its open runs. */
export interface RunsColumns {
  /** The kinds of its open runs as a sum of `RUNS_BITS`, or null if no run is open. */
  readonly runs: number | null;
  /** The earliest time at which a requested, answered or parked run is due: empty for now, null for never. */
  readonly due: string | null;
}

/** A kind of open run that listings can filter by. */
export type RunsKind = Exclude<keyof RunsIndex, "due">;

/** The bit of each kind. */
export const RUNS_BITS: Readonly<Record<RunsKind, number>> = { requested: 1, started: 2, parked: 4 };

/** Computes the columns for open runs from a head. */
export function runsColumns({ openRuns }: SessionHead): RunsColumns {
  const { due, ...kinds } = runsIndexOf(openRuns);
  let runs = 0;
  for (const kind of Object.keys(RUNS_BITS) as RunsKind[]) if (kinds[kind]) runs += RUNS_BITS[kind];
  return { runs: runs === 0 ? null : runs, due };
}

/** Whether two heads have the same columns. Fast for most appends, which leave `openRuns` the same object. */
export function sameRuns(before: SessionHead, after: SessionHead): boolean {
  if (before.openRuns === after.openRuns) return true;
  const [earlier, later] = [runsColumns(before), runsColumns(after)];
  return earlier.runs === later.runs && earlier.due === later.due;
}

/** The kind of run that a condition of a query selects. `running` and `interrupted` both select started runs: only the lease tells them apart. */
export function runsKindOf(condition: RunsCondition): RunsKind {
  if (condition === "asking") return "parked";
  return condition === "requested" ? condition : "started";
}
