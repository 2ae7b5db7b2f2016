import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** How a server's health route has answered. */
export interface ProbedHealth {
  readonly longestMs: number;
  /** The errors, if there was no good answer. */
  readonly failures: readonly string[];
}

/**
 * Checks a server's health every 100 ms from a separate thread, so that a busy test does not count as a slow server.
 * Time in which the machine ran other processes instead of the server is not counted either.
 */
export class HealthProber {
  readonly #worker: Worker;

  constructor(url: string, pid: number) {
    this.#worker = new Worker(new URL("programs/probe-health.mjs", import.meta.url), { workerData: { url, pid } });
  }

  /** The results since the last call, including the check in progress. */
  async take(): Promise<ProbedHealth> {
    const told = once(this.#worker, "message");
    this.#worker.postMessage("take");
    const [health] = await told;
    return health as ProbedHealth;
  }

  stop(): void {
    this.#worker.postMessage("stop");
  }
}
