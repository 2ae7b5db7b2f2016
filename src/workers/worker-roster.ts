import { areTexts, fieldsOf, publishJson, subscribeJson } from "./live-event.ts";
import { runnerOfHost } from "./notify-session.ts";
import type { Listening, RunQueue } from "./run-queue.ts";
import type { WorkerRun, WorkerView } from "./worker-view.ts";

const TOPIC = "workers";
const ASK_TOPIC = "workers.who";
const BEAT_MS = 5000;
/** How often workers are asked at most, by whoever wants to know sooner. */
const ASK_MS_MIN = 1000;
/** How long those who are asked may take to say so. */
export const REPLY_MS = 1000;
/** Who has not said anything for so long is taken for gone. */
const SILENCE_MS_MAX = 12_000;
/** How many are known at once. */
const WORKERS_MAX = 10_000;

/** Says from time to time, and when asked, that a worker is there; what comes back ends that. */
export async function sayPresent(queue: RunQueue, view: () => WorkerView): Promise<() => Promise<void>> {
  const say = (): void => publishJson(queue, TOPIC, view());
  const asked = await subscribeJson(queue, ASK_TOPIC, fieldsOf, say);
  const timer = setInterval(say, BEAT_MS).unref();
  say();
  return async () => {
    clearInterval(timer);
    publishJson(queue, TOPIC, { ...view(), runs: [], gone: true });
    await asked.close();
  };
}

/** What a worker says of itself, else null: whoever reaches the queue can say anything. */
function readWorker(value: unknown): (WorkerView & { readonly gone: boolean }) | null {
  const { name, host, agents, groups, concurrency, active, runs, gone } = fieldsOf(value) ?? {};
  if (!areTexts([name, host]) || !areTexts(agents) || !areTexts(groups) || !Array.isArray(runs)) return null;
  if (!Number.isSafeInteger(concurrency) || !Number.isSafeInteger(active) || !runs.every(isRun)) return null;
  const kept = runs.map(({ sessionId, runId, runner, userId, since }) => ({ sessionId, runId, runner, userId, since }));
  return { name, host, agents, groups, concurrency, active, runs: kept, gone: gone === true } as WorkerView & {
    gone: boolean;
  };
}

function isRun(value: unknown): value is WorkerRun {
  const { sessionId, runId, runner, userId, since } = fieldsOf(value) ?? {};
  const isTime = typeof since === "string" && !Number.isNaN(Date.parse(since));
  return areTexts([sessionId, runId, runner]) && (userId === null || typeof userId === "string") && isTime;
}

/** Knows the workers that are there. */
export class WorkerRoster {
  readonly #queue: RunQueue;
  readonly #workers = new Map<string, { readonly view: WorkerView; readonly heardMs: number }>();
  #subscription: Listening | null = null;
  #sinceMs = Number.POSITIVE_INFINITY;
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(queue: RunQueue) {
    this.#queue = queue;
  }

  async start(): Promise<void> {
    this.#subscription = await subscribeJson(this.#queue, TOPIC, readWorker, ({ gone, ...view }) => {
      this.#workers.delete(view.name);
      if (!gone && this.#workers.size < WORKERS_MAX) this.#workers.set(view.name, { view, heardMs: performance.now() });
    });
    this.#sinceMs = performance.now();
    this.ask();
  }

  /** Lets the workers say what they have by now, which shows as soon as they do. */
  ask(): void {
    const nowMs = performance.now();
    if (nowMs - this.#askedMs < ASK_MS_MIN) return;
    this.#askedMs = nowMs;
    publishJson(this.#queue, ASK_TOPIC, {});
  }

  get workers(): readonly WorkerView[] {
    const sinceMs = performance.now() - SILENCE_MS_MAX;
    for (const [name, { heardMs }] of this.#workers) if (heardMs < sinceMs) this.#workers.delete(name);
    return [...this.#workers.values()].map(({ view }) => view);
  }

  /** How long it takes until the workers have had the time to say that they are there; 0 where they have. */
  get replyMsLeft(): number {
    return Math.max(0, this.#sinceMs + REPLY_MS - performance.now());
  }

  /** Whether it is known that nobody is there who could take a run for a runner, or for any by no name; who has just begun to listen does not know. */
  lacks(runner: string): boolean {
    if (this.replyMsLeft > 0) return false;
    return !this.workers.some(
      ({ host, agents, groups }) => runner === "" || [...agents, ...groups, runnerOfHost(host)].includes(runner),
    );
  }

  async close(): Promise<void> {
    await this.#subscription?.close();
  }
}
