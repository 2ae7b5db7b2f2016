import { areTexts, fieldsOf, publishJson, subscribeJson } from "./live-event.ts";
import { runnerOfHost } from "./notify-session.ts";
import type { Listening, RunQueue } from "./run-queue.ts";
import type { WorkerRun, WorkerView } from "./worker-view.ts";

const TOPIC = "workers";
const ASK_TOPIC = "workers.who";
const BEAT_MS = 5000;
/** The shortest interval between requests for announcements. */
const ASK_MS_MIN = 1000;
/** How long workers may take to announce themselves. */
export const REPLY_MS = 1000;
/** A worker without an announcement for this time counts as stopped. */
const SILENCE_MS_MAX = 12_000;
/** The most workers that are tracked. */
const WORKERS_MAX = 10_000;

/** Announces a worker on a timer and on request. Returns a function that stops it. */
export async function announceWorker(queue: RunQueue, view: () => WorkerView): Promise<() => Promise<void>> {
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

/** Parses a worker's announcement; null if it is invalid, because anyone with access to the queue can publish. */
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

/** Tracks the live workers. */
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

  /** Asks the workers to announce themselves; the roster is updated as they do. */
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

  /** How long until the workers have had time to announce themselves; 0 if they have. */
  get replyMsLeft(): number {
    return Math.max(0, this.#sinceMs + REPLY_MS - performance.now());
  }

  /**
   * Whether no worker can take a run for this runner, or for any runner if the name is empty. False as long as the
   * workers had no time to announce themselves.
   */
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
