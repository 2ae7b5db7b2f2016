import type { RunView } from "skein/client";

/** The runs of one agent or group; an empty name means any agent. */
export interface RunnerRuns {
  readonly runner: string;
  readonly runs: readonly RunView[];
}

/**
 * Groups runs by agent or group: names sorted, so that the list does not jump, and in each group the longest waiting
 * run first.
 */
export function groupByRunner(runs: readonly RunView[]): readonly RunnerRuns[] {
  const groups = new Map<string, RunView[]>();
  for (const run of runs) {
    const runner = run.agent ?? run.group ?? "";
    groups.set(runner, [...(groups.get(runner) ?? []), run]);
  }
  // Ids of runs grow, so they order runs of the same millisecond.
  const orderOf = ({ requestedAt, startedAt, runId }: RunView): string => `${requestedAt ?? startedAt ?? ""} ${runId}`;
  return [...groups]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([runner, waiting]) => ({
      runner,
      runs: waiting.sort((one, other) => (orderOf(one) < orderOf(other) ? -1 : 1)),
    }));
}
