import { publishJson, subscribeJson } from "./live-event.ts";
import { runnerOfHost } from "./ring-session.ts";
import type { Listening, RunBell } from "./run-bell.ts";
import type { WorkerView } from "./worker-view.ts";

const TOPIC = "workers";
const ASK_TOPIC = "workers.who";
const BEAT_MS = 5000;
/** How often workers are asked at most, by whoever wants to know sooner. */
const ASK_MS_MIN = 1000;
/** Who has not said anything for so long is taken for gone. */
const SILENCE_MS_MAX = 12_000;

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
  #subscription: Listening | null = null;
  #sinceMs = Number.POSITIVE_INFINITY;
  #askedMs = Number.NEGATIVE_INFINITY;

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
    this.ask();
  }

  /** Lets the workers say what they have by now, which shows as soon as they do. */
  ask(): void {
    const nowMs = performance.now();
    if (nowMs - this.#askedMs < ASK_MS_MIN) return;
    this.#askedMs = nowMs;
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
    return !this.workers.some(
      ({ host, agents, groups }) => runner === "" || [...agents, ...groups, runnerOfHost(host)].includes(runner),
    );
  }

  async close(): Promise<void> {
    await this.#subscription?.close();
  }
}
