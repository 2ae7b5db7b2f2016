import type { RunView } from "skein/client";

/** Runs that one agent or group is to answer; an empty name is any agent. */
export interface RunnerRuns {
  readonly runner: string;
  readonly runs: readonly RunView[];
}

/** Runs by who is to answer in them: the names in order, so that nothing jumps, and below each who waits longest first. */
export function groupByRunner(runs: readonly RunView[]): readonly RunnerRuns[] {
  const groups = new Map<string, RunView[]>();
  for (const run of runs) {
    const runner = run.agent ?? run.group ?? "";
    groups.set(runner, [...(groups.get(runner) ?? []), run]);
  }
  const timeOf = ({ requestedAt, startedAt }: RunView): string => requestedAt ?? startedAt ?? "";
  return [...groups]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([runner, waiting]) => ({
      runner,
      runs: waiting.sort((one, other) => (timeOf(one) < timeOf(other) ? -1 : 1)),
    }));
}
