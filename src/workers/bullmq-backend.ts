import { SessionError } from "../session/errors.ts";
import { loadRedis } from "../stores/redis/open-redis.ts";
import { checkOfficialClient } from "../stores/redis/redis-client.ts";

/** Keys of one queue must be in one slot of a cluster. */
const PREFIX = "{skein}";
/** Beside one for each runner that is listened for, and one for what is published: commands are short and share these. */
const COMMAND_CONNECTIONS_MAX = 4;
const SCHEMA = "bullmq";
/** Nobody reads the events of BullMQ; the least that it keeps, give or take a few hundred. */
const EVENTS_MAX = 1;
const STALLED_MS = 500;
/** Without end; the largest number that PostgreSQL takes there. */
const STALLED_COUNT_MAX = 2 ** 31 - 1;
/** How soon a worker looks again after an error. */
const RETRY_MS = 500;
/** On PostgreSQL nobody is told that the time of a delayed job has come: how often a worker looks, in seconds. */
const LOOK_SECONDS = 0.5;
const RELAY_LEASE_MS = 6000;
const CONNECT_TIMEOUT_MS = 5000;

type BullMq = typeof import("bullmq");

/** What is asked of a queue of BullMQ. */
export interface BellQueue {
  add(name: string, data: object, options: BellJobOptions): Promise<unknown>;
  getJobCounts(...types: string[]): Promise<Readonly<Record<string, number>>>;
  close(): Promise<void>;
}

/** How a job is added. */
export interface BellJobOptions {
  readonly deduplication: { readonly id: string; readonly keepLastIfActive?: boolean; readonly reschedule?: boolean };
  readonly priority?: number;
  readonly delay?: number;
}

/** A job as its processor sees it. */
export interface BellJob {
  readonly name: string;
  readonly data: { readonly sessionId: string };
  readonly opts: { readonly priority?: number };
}

/** What is asked of a worker of BullMQ. */
export interface BellWorker {
  waitUntilReady(): Promise<unknown>;
  pause(doNotWaitActive: boolean): Promise<void>;
  resume(): Promise<void>;
  close(): Promise<void>;
}

/** What is asked of the relay of BullMQ. */
export interface BellRelay {
  publish(topic: string, data: unknown): Promise<unknown>;
  subscribe(
    topic: string,
    hear: (message: { readonly data: unknown }) => void,
  ): Promise<{ unsubscribe(): Promise<void> }>;
  close(): Promise<void>;
}

/** BullMQ on one server, whichever kind that is. */
export interface BullMqBackend {
  queue(name: string): BellQueue;
  worker(
    name: string,
    process: (job: BellJob) => Promise<void>,
    options: { readonly concurrency: number; readonly leaseMs: number },
  ): BellWorker;
  relay(): BellRelay;
  /** From now on, a connection that is lost stays lost: whoever closes does not wait for a server that is away. */
  leave(): void;
  close(): Promise<void>;
}

/** Told what goes wrong between commands: with a connection, a queue or the relay. */
type Report = (error: Error) => void;

/** Connects to the server that a URL names. @throws {SessionError} `DRIVER_MISSING`, `DRIVER_VERSION` or `STORE_FAILED`. */
export async function openBullMq(url: string, migrate: boolean, report: Report): Promise<BullMqBackend> {
  const bullmq = await loadBullMq();
  try {
    return /^rediss?:/.test(url) ? await onRedis(bullmq, url, report) : await onPostgres(bullmq, url, migrate, report);
  } catch (cause) {
    if (cause instanceof SessionError) throw cause;
    const { host } = new URL(url);
    throw new SessionError("STORE_FAILED", `The bell at ${host} cannot be opened: ${(cause as Error).message}`, {
      cause,
    });
  }
}

async function onRedis(bullmq: BullMq, url: string, report: Report): Promise<BullMqBackend> {
  const { createClient } = await loadRedis();
  let [connected, left] = [false, false];
  const client = createClient({
    url,
    // A ring that waits for a server to come back could wait for ever, and nothing is lost with it.
    disableOfflineQueue: true,
    socket: {
      connectTimeout: CONNECT_TIMEOUT_MS,
      // A first connection that fails is told to whoever uses the bell; a later one is tried again until the bell is left.
      reconnectStrategy: (retries) => connected && !left && Math.min(1000, 20 * 2 ** Math.min(retries, 10)),
    },
  });
  checkOfficialClient(client);
  // Whoever opens the bell is told of a first connection that fails.
  client.on("error", (error: Error) => connected && report(error));
  // Every queue and worker listens to it, too.
  client.setMaxListeners(0);
  await client.connect();
  connected = true;
  return backendOn(bullmq, { connection: client, prefix: PREFIX }, undefined, undefined, report, {
    leave: () => {
      left = true;
    },
    close: async () => {
      if (client.isReady) await client.close();
      else if (client.isOpen) client.destroy();
    },
  });
}

async function onPostgres(bullmq: BullMq, url: string, migrate: boolean, report: Report): Promise<BullMqBackend> {
  const { Pool } = await loadPg();
  const pool = new Pool({
    connectionString: url,
    max: COMMAND_CONNECTIONS_MAX,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    options: `-c search_path=${SCHEMA}`,
  });
  pool.on("error", report);
  // Every queue and worker listens to it, too.
  pool.setMaxListeners(0);
  try {
    if (migrate) {
      const client = await pool.connect();
      await bullmq.runMigrations(client, SCHEMA).finally(() => client.release());
    }
  } catch (error) {
    await pool.end();
    throw error;
  }
  const { createPostgresBackend, createPostgresRelayBackend } = bullmq;
  const backend = backendOn(
    bullmq,
    { connection: pool, drainDelay: LOOK_SECONDS },
    createPostgresBackend,
    createPostgresRelayBackend,
    report,
    // A pool connects when it is asked to.
    { leave: () => {}, close: () => pool.end() },
  );
  // Each of these keeps a connection of the pool for as long as it listens.
  const listens = <Part>(part: Part): Part => {
    pool.options.max += 1;
    return part;
  };
  return {
    ...backend,
    worker: (...args) => listens(backend.worker(...args)),
    relay: () => listens(backend.relay()),
  };
}

function backendOn(
  { Queue, Worker, Relay }: BullMq,
  base: object,
  queueBackend: unknown,
  relayBackend: unknown,
  report: Report,
  ends: Pick<BullMqBackend, "leave" | "close">,
): BullMqBackend {
  // The types of BullMQ tie each class to the kind of its server; what is asked of them here is the same on both.
  type Made<Part> = new (...args: readonly unknown[]) => Part & { on(event: "error", listener: Report): unknown };
  const make = <Part>(made: unknown, ...args: readonly unknown[]): Part => {
    const part = new (made as Made<Part>)(...args);
    part.on("error", report);
    return part;
  };
  const removed = { removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } };
  return {
    queue: (name) =>
      make<BellQueue>(Queue, name, { ...base, streams: { events: { maxLen: EVENTS_MAX } } }, queueBackend),
    worker: (name, process, { concurrency, leaseMs }) => {
      const locks = { lockDuration: leaseMs / 4, stalledInterval: STALLED_MS, maxStalledCount: STALLED_COUNT_MAX };
      return make<BellWorker>(
        Worker,
        name,
        process,
        { ...base, ...removed, ...locks, runRetryDelay: RETRY_MS, concurrency },
        queueBackend,
      );
    },
    relay: () => {
      const backend = relayBackend === undefined ? {} : { backend: relayBackend };
      return make<BellRelay>(Relay, { ...base, ...backend, namespace: "skein", leaseDuration: RELAY_LEASE_MS });
    },
    ...ends,
  };
}

async function loadBullMq(): Promise<BullMq> {
  let bullmq: BullMq;
  try {
    bullmq = await import("bullmq");
  } catch (cause) {
    throw missing("bullmq", cause);
  }
  if (typeof bullmq.Relay === "function" && typeof bullmq.createPostgresBackend === "function") return bullmq;
  throw new SessionError(
    "DRIVER_VERSION",
    "The installed version of bullmq is too old for a bell: install version 6.7 or later.",
  );
}

async function loadPg(): Promise<Pick<typeof import("pg"), "Pool">> {
  try {
    return (await import("pg")).default;
  } catch (cause) {
    throw missing("pg", cause);
  }
}

function missing(name: string, cause: unknown): SessionError {
  return new SessionError("DRIVER_MISSING", `A bell at this address needs the package ${name}: npm install ${name}.`, {
    cause,
  });
}
