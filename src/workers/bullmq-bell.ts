import { LEASE_MS_DEFAULT } from "../agent/persist/lease-hold.ts";
import { SessionError, show } from "../session/errors.ts";
import { type BellJob, type BellQueue, type BellRelay, type BullMqBackend, openBullMq } from "./bullmq-backend.ts";
import type { BellCounts, Listening, ListenOptions, RingHandler, RingOptions, RunBell } from "./run-bell.ts";

/** What is published goes out so late at most, together with what came since. */
const BATCH_MS = 50;
/** About how many characters go out together; the relay takes twice as many. */
const BATCH_CHARACTERS_MAX = 200_000;
/** Of a listener that was frozen, or whose ring is gone: another has it by now, and the lease decides who runs. */
const RING_LOST =
  /^could not renew lock for job|^(?:Missing (?:key|lock)|Lock mismatch) for job|is not in the active state/;
/** How PostgreSQL ends one of two statements of BullMQ's own that stood in each other's way; that one is tried again. */
const DEADLOCK = "40P01";
/** Errors that follow one another more closely are one trouble: a connection that is gone is tried again every second or so. */
const QUIET_MS = 6000;
/** What BullMQ takes. */
const PRIORITY_MAX = 2 ** 21;

const COUNTED = ["waiting", "prioritized", "active", "delayed"];

/** Where a bell for many machines is. */
export interface BullMqBellInit {
  /** `redis://…` or `postgres://…` (PostgreSQL 13 or later, with the package `pg`). */
  readonly url: string;
  /** On PostgreSQL: make or update its tables, in a schema of their own (default true). */
  readonly migrate?: boolean;
}

/** A bell for many machines, on BullMQ. It connects when it is first used. @throws {SessionError} `INVALID_OPTION`. */
export function bullmqBell({ url, migrate = true }: BullMqBellInit): RunBell {
  if (typeof url === "string" && /^(?:rediss?|postgres(?:ql)?):\/\//.test(url) && URL.canParse(url)) {
    return new BullMqBell(url, migrate);
  }
  throw new SessionError(
    "INVALID_OPTION",
    `${show(withoutLogin(url))} names no bell; give redis://host:6379 or postgres://host/database.`,
  );
}

/** A bell on BullMQ: one queue for each runner, as a job cannot be left to others. */
class BullMqBell implements RunBell {
  readonly #url: string;
  readonly #migrate: boolean;
  readonly #queues = new Map<string, BellQueue>();
  readonly #listening = new Set<Listening>();
  readonly #batches = new Map<string, string[]>();
  readonly #tells = new Set<(error: SessionError) => void>();
  #failedMs = Number.NEGATIVE_INFINITY;
  #opening: Promise<BullMqBackend> | null = null;
  #relay: BellRelay | null = null;
  #timer: NodeJS.Timeout | null = null;
  #sent: Promise<void> = Promise.resolve();

  constructor(url: string, migrate: boolean) {
    this.#url = url;
    this.#migrate = migrate;
  }

  /**
   * A job names its session only: of several, all but one are dropped. One for later has an id of its own, since it would
   * keep those for now away, and does no more than to ring.
   */
  async ring(sessionId: string, { runner, at, priority = 0 }: RingOptions): Promise<void> {
    const queue = await this.#queueOf(runner);
    const delay = at === undefined ? 0 : at.getTime() - Date.now();
    const order = priority === 0 ? {} : { priority: Math.min(priority, PRIORITY_MAX) };
    await (delay > 0
      ? queue.add(
          "later",
          { sessionId },
          { ...order, delay, deduplication: { id: `later.${sessionId}`, reschedule: true } },
        )
      : queue.add("now", { sessionId }, { ...order, deduplication: { id: sessionId, keepLastIfActive: true } }));
  }

  async listen(
    runners: readonly string[],
    handler: RingHandler,
    { concurrency = 1, leaseMs = LEASE_MS_DEFAULT }: ListenOptions = {},
  ): Promise<Listening> {
    const backend = await this.#open();
    const controller = new AbortController();
    const permits = new Permits(concurrency);
    const workers = runners.map((runner) =>
      backend.worker(queueName(runner), (job) => this.#process(runner, job, answer), { concurrency, leaseMs }),
    );
    const several = workers.length > 1 ? workers : [];
    const answer = async (sessionId: string): Promise<void> => {
      await permits.take();
      // Each queue has a worker of its own, and what one has taken no other can have: none takes more than fits.
      if (permits.left === 0) for (const worker of several) void worker.pause(true);
      try {
        await handler(sessionId, controller.signal).catch(() => {});
      } finally {
        permits.give();
        if (!controller.signal.aborted) for (const worker of several) void worker.resume();
      }
    };
    await Promise.all(workers.map((worker) => worker.waitUntilReady()));
    const listening: Listening = {
      close: async () => {
        this.#listening.delete(listening);
        controller.abort();
        await Promise.all(workers.map((worker) => worker.close()));
      },
    };
    this.#listening.add(listening);
    return listening;
  }

  /** Of the runners that this bell has rung or listened for. */
  async counts(): Promise<BellCounts> {
    const all = await Promise.all([...this.#queues.values()].map((queue) => queue.getJobCounts(...COUNTED)));
    const sum = (name: string): number => all.reduce((total, counts) => total + (counts[name] ?? 0), 0);
    return { waiting: sum("waiting") + sum("prioritized"), active: sum("active"), delayed: sum("delayed") };
  }

  async publish(topic: string, data: Uint8Array): Promise<void> {
    const batch = this.#batches.get(topic) ?? [];
    batch.push(Buffer.from(data).toString("base64"));
    this.#batches.set(topic, batch);
    this.#timer ??= setTimeout(() => this.#send(), BATCH_MS).unref();
  }

  async subscribe(topic: string, hear: (data: Uint8Array) => void): Promise<Listening> {
    const relay = await this.#openRelay();
    const subscription = await relay.subscribe(topic, ({ data }) => {
      for (const text of data as readonly string[]) hear(Buffer.from(text, "base64"));
    });
    return { close: () => subscription.unsubscribe() };
  }

  onError(tell: (error: SessionError) => void): () => void {
    this.#tells.add(tell);
    return () => void this.#tells.delete(tell);
  }

  async close(): Promise<void> {
    this.#tells.clear();
    if (this.#opening === null) return;
    const backend = await this.#opening;
    backend.leave();
    await Promise.all([...this.#listening].map((listening) => listening.close()));
    this.#send();
    await this.#sent;
    await this.#relay?.close();
    await Promise.all([...this.#queues.values()].map((queue) => queue.close()));
    await backend.close();
  }

  async #process(runner: string, job: BellJob, answer: (sessionId: string) => Promise<void>): Promise<void> {
    const { sessionId } = job.data;
    if (job.name === "now") return answer(sessionId);
    await this.ring(sessionId, { runner, priority: job.opts.priority ?? 0 });
  }

  /** Sends what was published, after what is being sent: a publisher's order is kept. */
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

  async #queueOf(runner: string): Promise<BellQueue> {
    const backend = await this.#open();
    const queue = this.#queues.get(runner) ?? backend.queue(queueName(runner));
    this.#queues.set(runner, queue);
    return queue;
  }

  async #openRelay(): Promise<BellRelay> {
    const backend = await this.#open();
    this.#relay ??= backend.relay();
    return this.#relay;
  }

  /** A connection that fails is tried again with the next call. */
  #open(): Promise<BullMqBackend> {
    this.#opening ??= openBullMq(this.#url, this.#migrate, this.#report).catch((error: unknown) => {
      this.#opening = null;
      throw error;
    });
    return this.#opening;
  }

  /** Tells the first error of several: every part of BullMQ has its own of the same trouble, again and again. */
  readonly #report = (cause: Error): void => {
    if (RING_LOST.test(cause.message) || (cause as { readonly code?: string }).code === DEADLOCK) return;
    const quietMs = performance.now() - this.#failedMs;
    this.#failedMs = performance.now();
    if (quietMs < QUIET_MS) return;
    const { host } = new URL(this.#url);
    const text = `The bell at ${host} has failed, and is tried again: ${cause.message || cause.name}`;
    const error = new SessionError("STORE_FAILED", text, { cause });
    for (const tell of this.#tells) tell(error);
  };
}

/** How many may be at work at once. */
class Permits {
  left: number;
  readonly #waiting: (() => void)[] = [];

  constructor(count: number) {
    this.left = count;
  }

  async take(): Promise<void> {
    if (this.left === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.left -= 1;
  }

  /** Hands it to whoever waits longest. */
  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.left += 1;
    else next();
  }
}

/** BullMQ takes no colon in the name of a queue. */
function queueName(runner: string): string {
  return `runs.${encodeURIComponent(runner)}`;
}

/** A mistyped URL may still hold a password. */
function withoutLogin(url: unknown): unknown {
  return typeof url === "string" ? url.replace(/\/\/[^/]*@/, "//…@") : url;
}
