import { checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import { setTimeout as pause } from "node:timers/promises";
import { LEASE_MS_DEFAULT } from "../agent/persist/lease-hold.ts";
import { SessionError, show } from "../session/errors.ts";
import { type QueuedJob, type JobQueue, type JobRelay, type BullMqBackend, openBullMq } from "./bullmq-backend.ts";
import {
  checkListening,
  checkNotification,
  type QueueCounts,
  type Listening,
  type ListenOptions,
  type NotificationHandler,
  type QueueListening,
  type NotifyOptions,
  type RunQueue,
} from "./run-queue.ts";

/** The longest delay of a published message, which is sent in a batch with later ones. */
const BATCH_MS = 50;
/** The approximate size of a batch in characters; the relay accepts twice as many. */
const BATCH_CHARACTERS_MAX = 200_000;
/**
 * BullMQ logs this for a listener that was frozen, or whose notification was removed: another listener has the notification by then, and
 * the lease decides which of them runs.
 */
const NOTIFICATION_LOST =
  /^could not renew lock for job|^(?:Missing (?:key|lock)|Lock mismatch) for job|is not in the active state/;
/** PostgreSQL ends one of two deadlocked statements of BullMQ with this code; it is retried. */
const DEADLOCK = "40P01";
/** Errors within this time count as one outage: a lost connection is retried about once a second. */
const QUIET_MS = 6000;
/** How long closing waits for a server that does not respond, besides active notifications. */
const CLOSE_MS_MAX = 3000;
/**
 * How long a notification waits for a queue that was not used before; one for an unreachable server is not waited for.
 */
const READY_MS_MAX = 5000;
/** The largest priority that BullMQ accepts. */
const PRIORITY_MAX = 2 ** 21;

const COUNTED = ["waiting", "prioritized", "active", "delayed"];

/** The options of a queue for several machines. */
export interface BullMqQueueInit {
  /** `redis://…` or `postgres://…` (PostgreSQL 13 or later, with the package `pg`). */
  readonly url: string;
  /** On PostgreSQL: create or migrate its tables, in their own schema (default true). */
  readonly migrate?: boolean;
}

/** A queue for several machines, on BullMQ. It connects on first use. @throws {SessionError} `INVALID_OPTION`. */
export function bullmqQueue(init: BullMqQueueInit): RunQueue {
  checkOptionsOf(init, { url: true, migrate: true } satisfies KeysOf<BullMqQueueInit>, "bullmqQueue");
  const { url, migrate = true } = init;
  if (typeof url === "string" && /^(?:rediss?|postgres(?:ql)?):\/\//.test(url) && URL.canParse(url)) {
    return new BullMqQueue(url, migrate);
  }
  throw new SessionError(
    "INVALID_OPTION",
    `${show(withoutLogin(url))} names no queue; give redis://host:6379 or postgres://host/database.`,
  );
}

/** A queue on BullMQ. Each runner has its own BullMQ queue, because a worker cannot select jobs within a queue. */
class BullMqQueue implements RunQueue {
  readonly #url: string;
  readonly #migrate: boolean;
  readonly #queues = new Map<string, Promise<JobQueue>>();
  readonly #listening = new Set<Listening>();
  readonly #batches = new Map<string, string[]>();
  readonly #errorListeners = new Set<(error: SessionError) => void>();
  #failedMs = Number.NEGATIVE_INFINITY;
  #opening: Promise<BullMqBackend> | null = null;
  #relay: Promise<JobRelay> | null = null;
  #timer: NodeJS.Timeout | null = null;
  #sent: Promise<void> = Promise.resolve();

  constructor(url: string, migrate: boolean) {
    this.#url = url;
    this.#migrate = migrate;
  }

  /**
   * The id of a job is its session's, so duplicates are dropped. A delayed job has another id, because it would
   * otherwise prevent immediate ones; when it is due, it only notifies again.
   */
  async notify(sessionId: string, options: NotifyOptions): Promise<void> {
    checkNotification(sessionId, options);
    const { runner, at, priority = 0 } = options;
    const queue = await this.#queueOf(runner);
    const delay = at === undefined ? 0 : at.getTime() - Date.now();
    const order = priority === 0 ? {} : { priority: Math.min(priority, PRIORITY_MAX) };
    const added =
      delay > 0
        ? queue.add(
            "later",
            { sessionId },
            { ...order, delay, deduplication: { id: `later.${sessionId}`, reschedule: true } },
          )
        : queue.add("now", { sessionId }, { ...order, deduplication: { id: sessionId, keepLastIfActive: true } });
    await added.catch((error: unknown) => {
      throw this.#failure(error);
    });
  }

  async listen(
    runners: readonly string[],
    handler: NotificationHandler,
    options: ListenOptions = {},
  ): Promise<QueueListening> {
    checkListening(runners, handler, options);
    const { concurrency = 1, leaseMs = LEASE_MS_DEFAULT } = options;
    const backend = await this.#open();
    const controller = new AbortController();
    let paused = false;
    const permits = new Permits(concurrency);
    const workers = runners.map((runner) =>
      backend.worker(queueName(runner), (job) => this.#process(runner, job, (id) => answer(id, runner)), {
        concurrency,
        leaseMs,
      }),
    );
    const several = workers.length > 1 ? workers : [];
    const resume = (): void => {
      if (!paused && !controller.signal.aborted) for (const worker of workers) void worker.resume();
    };
    const answer = async (sessionId: string, runner: string): Promise<void> => {
      await permits.take();
      // Each BullMQ queue has its own worker, and a job taken by one cannot go to another: workers are paused when no
      // permit is left.
      if (permits.left === 0) for (const worker of several) void worker.pause(true);
      try {
        await handler(sessionId, controller.signal, runner).catch(() => {});
      } finally {
        permits.give();
        if (several.length > 0) resume();
      }
    };
    try {
      await within(READY_MS_MAX, Promise.all(workers.map((worker) => worker.waitUntilReady())));
    } catch (error) {
      for (const worker of workers) void worker.close(true).catch(() => {});
      throw this.#failure(error);
    }
    const listening: QueueListening = {
      pause: () => {
        paused = true;
        for (const worker of workers) void worker.pause(true).catch(this.#report);
      },
      resume: () => {
        paused = false;
        resume();
      },
      close: async () => {
        this.#listening.delete(listening);
        controller.abort();
        const closed = Promise.all(workers.map((worker) => worker.close()));
        await permits.all();
        // Only the acknowledgements are left to send, to a server that may be unreachable.
        await within(CLOSE_MS_MAX, closed).catch(() => {});
      },
    };
    this.#listening.add(listening);
    return listening;
  }

  /** For the runners that this queue has notified or listened for. */
  async counts(): Promise<QueueCounts> {
    const queues = await Promise.all(this.#queues.values());
    const all = await Promise.all(queues.map((queue) => queue.getJobCounts(...COUNTED)));
    const sum = (name: string): number => all.reduce((total, counts) => total + (counts[name] ?? 0), 0);
    return { waiting: sum("waiting") + sum("prioritized"), active: sum("active"), delayed: sum("delayed") };
  }

  async publish(topic: string, data: Uint8Array): Promise<void> {
    const batch = this.#batches.get(topic) ?? [];
    batch.push(Buffer.from(data).toString("base64"));
    this.#batches.set(topic, batch);
    this.#timer ??= setTimeout(() => this.#send(), BATCH_MS).unref();
  }

  async subscribe(topic: string, handle: (data: Uint8Array) => void): Promise<Listening> {
    const relay = await this.#openRelay();
    const subscription = await relay.subscribe(topic, ({ data }) => {
      for (const text of data as readonly string[]) handle(Buffer.from(text, "base64"));
    });
    return { close: () => subscription.unsubscribe() };
  }

  onError(report: (error: SessionError) => void): () => void {
    this.#errorListeners.add(report);
    return () => void this.#errorListeners.delete(report);
  }

  async close(): Promise<void> {
    this.#errorListeners.clear();
    if (this.#opening === null) return;
    const backend = await this.#opening;
    backend.leave();
    await Promise.all([...this.#listening].map((listening) => listening.close()));
    await within(CLOSE_MS_MAX, this.#closeParts()).catch(() => {});
    backend.close();
  }

  async #closeParts(): Promise<void> {
    this.#send();
    await this.#sent;
    await (await this.#relay)?.close();
    for (const queue of await Promise.all(this.#queues.values())) await queue.close();
  }

  async #process(runner: string, job: QueuedJob, answer: (sessionId: string) => Promise<void>): Promise<void> {
    const { sessionId } = job.data;
    if (job.name === "now") return answer(sessionId);
    await this.notify(sessionId, { runner, priority: job.opts.priority ?? 0 });
  }

  /** Sends published messages after the present batch: messages of a publisher stay in order. */
  #send(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const batches = [...this.#batches];
    this.#batches.clear();
    if (batches.length > 0) this.#sent = this.#sent.then(() => this.#sendAll(batches)).catch(() => {});
  }

  async #sendAll(batches: readonly (readonly [topic: string, batch: readonly string[]])[]): Promise<void> {
    const relay = await this.#openRelay();
    for (const [topic, batch] of batches) {
      for (let from = 0; from < batch.length; ) {
        let [to, characters] = [from, 0];
        while (to < batch.length && (to === from || characters < BATCH_CHARACTERS_MAX)) {
          characters += batch[to++]?.length ?? 0;
        }
        await relay.publish(topic, batch.slice(from, to));
        from = to;
      }
    }
  }

  async #queueOf(runner: string): Promise<JobQueue> {
    const backend = await this.#open();
    const queue =
      this.#queues.get(runner) ?? this.#ready(backend.queue(queueName(runner)), () => this.#queues.delete(runner));
    this.#queues.set(runner, queue);
    return queue;
  }

  async #openRelay(): Promise<JobRelay> {
    const backend = await this.#open();
    this.#relay ??= this.#ready(backend.relay(), () => {
      this.#relay = null;
    });
    return this.#relay;
  }

  /**
   * A part of BullMQ that was created while its server was unreachable never works: it is dropped, and created again at
   * the next call.
   */
  async #ready<Part extends JobQueue | JobRelay>(part: Part, forget: () => void): Promise<Part> {
    try {
      await within(READY_MS_MAX, part.waitUntilReady());
      return part;
    } catch (error) {
      forget();
      void part.close().catch(() => {});
      throw this.#failure(error);
    }
  }

  #failure(cause: unknown): SessionError {
    const { host } = new URL(this.#url);
    const { message } = cause as Error;
    return new SessionError("STORE_FAILED", `The queue at ${host} cannot be reached; try again: ${message}`, { cause });
  }

  /** A failed connection is retried at the next call. */
  #open(): Promise<BullMqBackend> {
    this.#opening ??= openBullMq(this.#url, this.#migrate, this.#report).catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  /** Reports the first error of an outage: every part of BullMQ repeats its own. */
  readonly #report = (cause: Error): void => {
    if (NOTIFICATION_LOST.test(cause.message) || (cause as { readonly code?: string }).code === DEADLOCK) return;
    const quietMs = performance.now() - this.#failedMs;
    this.#failedMs = performance.now();
    if (quietMs < QUIET_MS) return;
    const { host } = new URL(this.#url);
    const text = `The queue at ${host} has failed, and is tried again: ${cause.message || cause.name}`;
    const error = new SessionError("STORE_FAILED", text, { cause });
    for (const report of this.#errorListeners) report(error);
  };
}

/** Limits how many notifications are handled at the same time. */
class Permits {
  left: number;
  readonly #count: number;
  readonly #waiting: (() => void)[] = [];
  #free: (() => void) | null = null;

  constructor(count: number) {
    this.left = count;
    this.#count = count;
  }

  /** Resolves once no permit is in use. */
  async all(): Promise<void> {
    if (this.left < this.#count) await new Promise<void>((resolve) => (this.#free = resolve));
  }

  async take(): Promise<void> {
    if (this.left === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.left -= 1;
  }

  /** Gives the permit to the longest waiter. */
  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.left += 1;
    else next();
    if (this.left === this.#count) this.#free?.();
  }
}

/** Rejects if the work takes longer; its own later failure is ignored. */
async function within<T>(ms: number, work: Promise<T>): Promise<T> {
  const over = new AbortController();
  const late = pause(ms, undefined, { signal: over.signal }).then(
    () => Promise.reject(new Error(`It did not answer for ${ms} ms.`)),
    () => new Promise<never>(() => {}),
  );
  try {
    return await Promise.race([work, late]);
  } finally {
    over.abort();
  }
}

/** BullMQ accepts no colon in a queue name. */
function queueName(runner: string): string {
  return `runs.${encodeURIComponent(runner)}`;
}

/** A mistyped URL may still contain a password. */
function withoutLogin(url: unknown): unknown {
  return typeof url === "string" ? url.replace(/\/\/[^/]*@/, "//…@") : url;
}
