import { startProcess } from "../start-process.ts";

/** What a worker runs on. */
export interface WorkerInput {
  /** The server that holds the sessions, and the queue unless the worker has one of its own. */
  readonly url: string;
  /** What sets this fleet's sessions apart. */
  readonly prefix: string;
  readonly queue: "shared" | "own";
  /** How many runs it has at once. */
  readonly concurrency: number;
  /** How long its model takes. */
  readonly modelMs: number;
}

/** How a worker stands. */
export interface WorkerState {
  /** The most runs that were with its model at once. */
  readonly most: number;
  /** The most memory that the process has had resident. */
  readonly peakBytes: number;
  readonly residentBytes: number;
}

/** A worker in a process of its own; disposing ends the process. */
export interface WorkerProcess extends AsyncDisposable {
  state(): Promise<WorkerState>;
  /** Asks for a run of each session, from inside: for one whose queue nobody else can notify. */
  request(sessionIds: readonly string[]): Promise<void>;
}

/** Starts a worker of the agent `talker`; resolves when it listens. */
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
