import { once } from "node:events";
import { Worker } from "node:worker_threads";

/** How a server's health route has answered. */
export interface ProbedHealth {
  readonly longestMs: number;
  /** What went wrong where there was no good answer. */
  readonly failures: readonly string[];
}

/**
 * Asks a server for its health every 100 ms, from a thread of its own, so that a busy test does not count as a slow server;
 * nor does the time in which the server would have run, but the machine ran something else.
 */
export class HealthProber {
  readonly #worker: Worker;

  constructor(url: string, pid: number) {
    this.#worker = new Worker(new URL("programs/probe-health.mjs", import.meta.url), { workerData: { url, pid } });
  }

  /** What it saw since it was last asked, the probe that is under way included. */
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
