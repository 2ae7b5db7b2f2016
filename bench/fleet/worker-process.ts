import { startProcess } from "../start-process.ts";

/** The configuration of a worker. */
export interface WorkerInput {
  /** The server of the sessions, and of the queue unless the worker has a private one. */
  readonly url: string;
  /** The prefix of this fleet's sessions. */
  readonly prefix: string;
  readonly queue: "shared" | "own";
  /** How many runs it executes in parallel. */
  readonly concurrency: number;
  /** How long its model takes. */
  readonly modelMs: number;
}

/** The state of a worker. */
export interface WorkerState {
  /** The maximum number of runs that waited for its model at the same time. */
  readonly most: number;
  /** The maximum resident memory of the process. */
  readonly peakBytes: number;
  readonly residentBytes: number;
}

/** A worker in a separate process; disposing it ends the process. */
export interface WorkerProcess extends AsyncDisposable {
  state(): Promise<WorkerState>;
  /** Requests a run of each session from inside the process, for a worker with a private queue. */
  request(sessionIds: readonly string[]): Promise<void>;
}

/** Starts a worker of the agent `talker`; resolves when it is ready. */
export async function startWorkerProcess(input: WorkerInput): Promise<WorkerProcess> {
  const process = await startProcess("worker", input);
  return {
    state: () => process.ask("state") as Promise<WorkerState>,
    request: async (sessionIds) => {
      await process.ask({ sessionIds });
    },
    [Symbol.asyncDispose]: () => process[Symbol.asyncDispose](),
  };
}
