import { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { SessionError } from "../session/errors.ts";
import { loadRedis } from "../stores/redis/open-redis.ts";

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
/** How long a ping may go unanswered before its connection is given up: a network can be cut without a word. */
const SILENCE_MS_MAX = 5000;
/** The same of a statement, which may have to wait for others. */
const QUERY_MS_MAX = 10_000;
/** What a worker waits for, a server answers within ten seconds. */
const BLOCKED_MS_MAX = 15_000;
/** How long a worker waits after an error before it asks for a job again: twice as long each time, up to the second number. */
const ASK_AGAIN_MS = [50, 1000] as const;

type BullMq = typeof import("bullmq");

/** What is asked of a queue of BullMQ. */
export interface JobQueue {
  waitUntilReady(): Promise<unknown>;
  add(name: string, data: object, options: JobOptions): Promise<unknown>;
  getJobCounts(...types: string[]): Promise<Readonly<Record<string, number>>>;
  close(): Promise<void>;
}

/** How a job is added. */
export interface JobOptions {
  readonly deduplication: { readonly id: string; readonly keepLastIfActive?: boolean; readonly reschedule?: boolean };
  readonly priority?: number;
  readonly delay?: number;
}

/** A job as its processor sees it. */
export interface QueuedJob {
  readonly name: string;
  readonly data: { readonly sessionId: string };
  readonly opts: { readonly priority?: number };
}

/** What is asked of a worker of BullMQ. */
export interface JobWorker {
  waitUntilReady(): Promise<unknown>;
  pause(doNotWaitActive: boolean): Promise<void>;
  resume(): Promise<void>;
  /** Waits for the jobs that it has, unless `force` is given. */
  close(force?: boolean): Promise<void>;
}

/** What is asked of the relay of BullMQ. */
export interface JobRelay {
  waitUntilReady(): Promise<unknown>;
  publish(topic: string, data: unknown): Promise<unknown>;
  subscribe(
    topic: string,
    hear: (message: { readonly data: unknown }) => void,
  ): Promise<{ unsubscribe(): Promise<void> }>;
  close(): Promise<void>;
}

/** BullMQ on one server, whichever kind that is. */
export interface BullMqBackend {
  queue(name: string): JobQueue;
  worker(
    name: string,
    process: (job: QueuedJob) => Promise<void>,
    options: { readonly concurrency: number; readonly leaseMs: number },
  ): JobWorker;
  relay(): JobRelay;
  /** From now on, a connection that is lost stays lost: whoever closes does not wait for a server that is away. */
  leave(): void;
  /** Ends all connections, without a word to the server: it may be away. */
  close(): void;
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
    throw new SessionError("STORE_FAILED", `The queue at ${host} cannot be opened: ${(cause as Error).message}`, {
      cause,
    });
  }
}

async function onRedis(bullmq: BullMq, url: string, report: Report): Promise<BullMqBackend> {
  const { createClient } = await loadRedis();
  let [connected, left] = [false, false];
  const client = createClient({
    url,
    // A notification that waits for a server to come back could wait for ever, and nothing is lost with it.
    disableOfflineQueue: true,
    socket: {
      connectTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: BLOCKED_MS_MAX,
      // A first connection that fails is told to whoever uses the queue; a later one is tried again until the queue is left.
      reconnectStrategy: (retries) => connected && !left && Math.min(1000, 20 * 2 ** Math.min(retries, 10)),
    },
  });
  // Whoever opens the queue is told of a first connection that fails.
  client.on("error", (error: Error) => connected && report(error));
  // Every queue and worker listens to it, too.
  client.setMaxListeners(0);
  await client.connect();
  connected = true;
  const stopWatching = dropSilent(client);
  // Every worker, and the relay, blocks on a connection of its own, which it makes as a copy of this one.
  const copies = new Set<{ destroy(): void }>();
  const duplicate = client.duplicate.bind(client);
  client.duplicate = ((options: Parameters<typeof duplicate>[0]) => {
    const copy = duplicate(options);
    copies.add(copy);
    copy.on("error", () => {}).on("end", () => copies.delete(copy));
    return copy;
  }) as typeof client.duplicate;
  const connection = heard(bullmq.createNodeRedisClient(client));
  return backendOn(
    bullmq,
    { connection, prefix: PREFIX },
    bullmq.createRedisBackend,
    bullmq.createRedisRelayBackend,
    report,
    {
      leave: () => {
        left = true;
        stopWatching();
      },
      close: () => {
        for (const each of [client, ...copies]) each.destroy();
      },
    },
  );
}

/**
 * Makes sure that someone listens to the errors of an adapter of BullMQ, and of its copies. A part of BullMQ that is closed
 * no longer does; its adapter would then throw the error into the client, which would not try to connect again.
 */
function heard<Adapter extends HeardAdapter>(adapter: Adapter): Adapter {
  adapter.on("error", () => {});
  const duplicate = adapter.duplicate.bind(adapter);
  adapter.duplicate = (...args) => heard(duplicate(...args));
  return adapter;
}

interface HeardAdapter {
  on(event: "error", listener: () => void): unknown;
  duplicate(...args: readonly unknown[]): HeardAdapter;
}

interface PingedClient {
  readonly isReady: boolean;
  ping(): Promise<unknown>;
  connect(): Promise<unknown>;
  destroy(): void;
}

/** Makes a client connect anew where a ping goes unanswered; what waited for an answer fails then. */
function dropSilent(client: PingedClient): () => void {
  let asked = false;
  const timer = setInterval(() => {
    if (!client.isReady) return;
    if (asked) {
      client.destroy();
      asked = false;
      return void client.connect().catch(() => {});
    }
    asked = true;
    const answered = (): void => {
      asked = false;
    };
    void client.ping().then(answered, answered);
  }, SILENCE_MS_MAX).unref();
  return () => clearInterval(timer);
}

/** On a connection of its own: it may have to wait for another process that does the same. */
async function migrateQueue(
  { runMigrations }: BullMq,
  client: InstanceType<typeof import("pg").Client>,
): Promise<void> {
  client.on("error", () => {});
  try {
    await client.connect();
    await runMigrations(client, SCHEMA);
  } finally {
    await client.end();
  }
}

async function onPostgres(bullmq: BullMq, url: string, migrate: boolean, report: Report): Promise<BullMqBackend> {
  const { Client, Pool } = await loadPg();
  if (migrate)
    await migrateQueue(bullmq, new Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS }));
  const sockets = new Set<Socket>();
  const pool = new Pool({
    connectionString: url,
    max: COMMAND_CONNECTIONS_MAX,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    query_timeout: QUERY_MS_MAX,
    keepAlive: true,
    options: `-c search_path=${SCHEMA}`,
    // Known here, so that they can be ended whatever the server says.
    stream: () => {
      const socket = new Socket();
      sockets.add(socket);
      return socket.once("close", () => sockets.delete(socket));
    },
  });
  pool.on("error", report);
  // The pool listens to a connection only while nobody has it, and an error that nobody hears ends the process.
  pool.on("connect", (client) => client.on("error", report));
  // Every queue and worker listens to it, too.
  pool.setMaxListeners(0);
  const { createPostgresBackend, createPostgresRelayBackend } = bullmq;
  const backend = backendOn(
    bullmq,
    { connection: pool, drainDelay: LOOK_SECONDS },
    createPostgresBackend,
    createPostgresRelayBackend,
    report,
    {
      // A pool connects when it is asked to.
      leave: () => {},
      close: () => {
        void pool.end();
        for (const socket of sockets) socket.destroy();
      },
    },
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
  const left = new AbortController();
  const patient = makePatient(queueBackend as BackendFactory, report, left.signal);
  const removed = { removeOnComplete: { count: 0 }, removeOnFail: { count: 0 } };
  return {
    queue: (name) =>
      make<JobQueue>(Queue, name, { ...base, streams: { events: { maxLen: EVENTS_MAX } } }, queueBackend),
    worker: (name, process, { concurrency, leaseMs }) => {
      const locks = { lockDuration: leaseMs / 4, stalledInterval: STALLED_MS, maxStalledCount: STALLED_COUNT_MAX };
      return make<JobWorker>(
        Worker,
        name,
        process,
        { ...base, ...removed, ...locks, runRetryDelay: RETRY_MS, concurrency },
        patient,
      );
    },
    relay: () => {
      const options = { ...base, backend: relayBackend, namespace: "skein", leaseDuration: RELAY_LEASE_MS };
      return make<JobRelay>(Relay, options);
    },
    leave: () => {
      left.abort();
      ends.leave();
    },
    close: ends.close,
  };
}

/** What a worker of BullMQ asks its server for again and again. */
interface AskedBackend {
  moveToActive(...args: readonly unknown[]): Promise<unknown>;
  moveStalledJobsToWait(): Promise<readonly string[]>;
}

type BackendFactory = (...args: readonly unknown[]) => AskedBackend;

/**
 * Makes a worker wait after any error. BullMQ waits after those that it takes for a lost connection, and asks again at once
 * after all others: a client that refuses a command as it is offline does so in the same turn of the event loop, which then
 * never gets to the timer that connects it again. And after an error it looks for the jobs of dead workers five seconds late.
 */
function makePatient(factory: BackendFactory, report: Report, left: AbortSignal): BackendFactory {
  return (...args) => {
    const backend = factory(...args);
    const moveToActive = backend.moveToActive.bind(backend);
    const moveStalledJobsToWait = backend.moveStalledJobsToWait.bind(backend);
    const [firstMs, lastMs] = ASK_AGAIN_MS;
    let waitMs: number = firstMs;
    backend.moveToActive = async (...asked) => {
      try {
        const job = await moveToActive(...asked);
        waitMs = firstMs;
        return job;
      } catch (error) {
        await pause(waitMs, undefined, { signal: left }).catch(() => {});
        waitMs = Math.min(waitMs * 2, lastMs);
        throw error;
      }
    };
    backend.moveStalledJobsToWait = () =>
      moveStalledJobsToWait().catch((error: Error) => {
        report(error);
        return [];
      });
    return backend;
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
    "The installed version of bullmq is too old for a queue: install version 6.7 or later.",
  );
}

async function loadPg(): Promise<Pick<typeof import("pg"), "Client" | "Pool">> {
  try {
    return (await import("pg")).default;
  } catch (cause) {
    throw missing("pg", cause);
  }
}

function missing(name: string, cause: unknown): SessionError {
  return new SessionError("DRIVER_MISSING", `A queue at this address needs the package ${name}: npm install ${name}.`, {
    cause,
  });
}
