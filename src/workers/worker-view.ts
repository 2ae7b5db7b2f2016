/** A worker, as it says itself. */
export interface WorkerView {
  readonly name: string;
  readonly host: string;
  /** The names of what it runs. */
  readonly agents: readonly string[];
  readonly groups: readonly string[];
  readonly concurrency: number;
  /** How many runs it has. */
  readonly active: number;
  /** The first hundred of them. */
  readonly runs: readonly WorkerRun[];
}

/** A run that a worker has. */
export interface WorkerRun {
  readonly sessionId: string;
  readonly runId: string;
  readonly runner: string;
  readonly userId: string | null;
  /** Since when it has it. */
  readonly since: string;
}
