/** A worker as it announces itself. */
export interface WorkerView {
  readonly name: string;
  readonly host: string;
  /** The names of its agents and groups. */
  readonly agents: readonly string[];
  readonly groups: readonly string[];
  readonly concurrency: number;
  /** The number of its runs. */
  readonly active: number;
  /** The first hundred of them. */
  readonly runs: readonly WorkerRun[];
}

/** A run that a worker holds. */
export interface WorkerRun {
  readonly sessionId: string;
  readonly runId: string;
  readonly runner: string;
  readonly userId: string | null;
  /** Since when the worker holds it. */
  readonly since: string;
}
