import { publishJson, subscribeJson } from "./live-event.ts";
import type { RunBell, Subscription } from "./run-bell.ts";

const TOPIC = "workers";
const ASK_TOPIC = "workers.who";
const BEAT_MS = 5000;
/** Who has not said anything for so long is taken for gone. */
const SILENCE_MS_MAX = 12_000;

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

/** Says from time to time, and when asked, that a worker is there; what comes back ends that. */
export async function sayPresent(bell: RunBell, view: () => WorkerView): Promise<() => Promise<void>> {
  const say = (): void => publishJson(bell, TOPIC, view());
  const asked = await subscribeJson(bell, ASK_TOPIC, say);
  const timer = setInterval(say, BEAT_MS).unref();
  say();
  return async () => {
    clearInterval(timer);
    publishJson(bell, TOPIC, { ...view(), runs: [], gone: true });
    await asked.close();
  };
}

/** Knows the workers that are there. */
export class WorkerRoster {
  readonly #bell: RunBell;
  readonly #workers = new Map<string, { readonly view: WorkerView; readonly heardMs: number }>();
  #subscription: Subscription | null = null;
  #sinceMs = Number.POSITIVE_INFINITY;

  constructor(bell: RunBell) {
    this.#bell = bell;
  }

  async start(): Promise<void> {
    this.#subscription = await subscribeJson<WorkerView & { readonly gone?: boolean }>(
      this.#bell,
      TOPIC,
      ({ gone, ...view }) => {
        if (gone === true) this.#workers.delete(view.name);
        else this.#workers.set(view.name, { view, heardMs: performance.now() });
      },
    );
    this.#sinceMs = performance.now();
    publishJson(this.#bell, ASK_TOPIC, {});
  }

  get workers(): readonly WorkerView[] {
    const sinceMs = performance.now() - SILENCE_MS_MAX;
    for (const [name, { heardMs }] of this.#workers) if (heardMs < sinceMs) this.#workers.delete(name);
    return [...this.#workers.values()].map(({ view }) => view);
  }

  /** Whether it is known that nobody is there who could take a run for a runner, or for any by no name; who has just begun to listen does not know. */
  lacks(runner: string): boolean {
    if (performance.now() - this.#sinceMs < BEAT_MS) return false;
    return !this.workers.some(({ agents, groups }) => runner === "" || [...agents, ...groups].includes(runner));
  }

  async close(): Promise<void> {
    await this.#subscription?.close();
  }
}
