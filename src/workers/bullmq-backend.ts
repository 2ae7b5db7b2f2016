import { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { SessionError } from "../session/errors.ts";
import { loadRedis } from "../stores/redis/open-redis.ts";

/** The keys of a queue must be in one slot of a Redis cluster. */
const PREFIX = "{skein}";
/** In addition to one connection for each listener and one for publishing: commands are short and share these. */
const COMMAND_CONNECTIONS_MAX = 4;
const SCHEMA = "bullmq";
/** Nobody reads BullMQ's event stream; this is its minimum length (approximate, within a few hundred). */
const EVENTS_MAX = 1;
const STALLED_MS = 500;
/** Effectively unlimited; the largest value that PostgreSQL accepts here. */
const STALLED_COUNT_MAX = 2 ** 31 - 1;
/** How soon a worker retries after an error. */
const RETRY_MS = 500;
/**
 * On PostgreSQL there is no notification when a delayed job becomes due: the polling interval of a worker, in seconds.
 */
const LOOK_SECONDS = 0.5;
const RELAY_LEASE_MS = 6000;
const CONNECT_TIMEOUT_MS = 5000;
/** How long a ping may remain unanswered before its connection is dropped: a network can fail silently. */
const SILENCE_MS_MAX = 5000;
/** The time limit for a statement, which may have to wait for locks. */
const QUERY_MS_MAX = 10_000;
/** The time limit for a blocking command; a server answers those within ten seconds. */
const BLOCKED_MS_MAX = 15_000;
/** The delay after an error before a worker asks for a job again: doubled each time, up to the second number. */
const ASK_AGAIN_MS = [50, 1000] as const;

type BullMq = typeof import("bullmq");

/** The part of BullMQ's queue that is used here. */
export interface JobQueue {
  waitUntilReady(): Promise<unknown>;
  add(name: string, data: object, options: JobOptions): Promise<unknown>;
  getJobCounts(...types: string[]): Promise<Readonly<Record<string, number>>>;
  close(): Promise<void>;
}

/** Options of a new job. */
export interface JobOptions {
  readonly deduplication: { readonly id: string; readonly keepLastIfActive?: boolean; readonly reschedule?: boolean };
  readonly priority?: number;
  readonly delay?: number;
}

/** A job as passed to its processor. */
export interface QueuedJob {
  readonly name: string;
  readonly data: { readonly sessionId: string };
  readonly opts: { readonly priority?: number };
}

/** The part of BullMQ's worker that is used here. */
export interface JobWorker {
  waitUntilReady(): Promise<unknown>;
  pause(doNotWaitActive: boolean): Promise<void>;
  resume(): Promise<void>;
  /** Waits for the active jobs, unless `force` is given. */
  close(force?: boolean): Promise<void>;
}

/** The part of BullMQ's relay that is used here. */
export interface JobRelay {
  waitUntilReady(): Promise<unknown>;
  publish(topic: string, data: unknown): Promise<unknown>;
  subscribe(
    topic: string,
    handle: (message: { readonly data: unknown }) => void,
  ): Promise<{ unsubscribe(): Promise<void> }>;
  close(): Promise<void>;
}

/** BullMQ on Redis or PostgreSQL. */
export interface BullMqBackend {
  queue(name: string): JobQueue;
  worker(
    name: string,
    process: (job: QueuedJob) => Promise<void>,
    options: { readonly concurrency: number; readonly leaseMs: number },
  ): JobWorker;
  relay(): JobRelay;
  /** From now on, lost connections are not restored: closing must not wait for a server that is unreachable. */
  leave(): void;
  /** Closes all connections without sending anything: the server may be unreachable. */
  close(): void;
}

/** Called with errors that occur between commands: of a connection, a queue or the relay. */
type Report = (error: Error) => void;

/** Connects to the server of a URL. @throws {SessionError} `DRIVER_MISSING`, `DRIVER_VERSION` or `STORE_FAILED`. */
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
    // A notification must not wait for an unreachable server; nothing is lost without it.
    disableOfflineQueue: true,
    socket: {
      connectTimeout: CONNECT_TIMEOUT_MS,
      socketTimeout: BLOCKED_MS_MAX,
      // If the first connection fails, the caller gets the error; later ones are retried until the queue is left.
      reconnectStrategy: (retries) => connected && !left && Math.min(1000, 20 * 2 ** Math.min(retries, 10)),
    },
  });
  // If the first connection fails, the code that opens the queue gets the error.
  client.on("error", (error: Error) => connected && report(error));
  // Every queue and worker adds a listener.
  client.setMaxListeners(0);
  await client.connect();
  connected = true;
  const stopWatching = dropSilent(client);
  // Every worker, and the relay, uses its own connection for blocking commands, made as a copy of this one.
  const copies = new Set<{ destroy(): void }>();
  const duplicate = client.duplicate.bind(client);
  client.duplicate = ((options: Parameters<typeof duplicate>[0]) => {
    const copy = duplicate(options);
    copies.add(copy);
    copy.on("error", () => {}).on("end", () => copies.delete(copy));
    return copy;
  }) as typeof client.duplicate;
  const connection = ignoringErrors(bullmq.createNodeRedisClient(client));
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
 * Ensures that the errors of an adapter of BullMQ and of its copies have a listener. A closed part of BullMQ removes
 * its own; the adapter would then throw the error into the client, which would stop reconnecting.
 */
function ignoringErrors<Adapter extends ErrorSource>(adapter: Adapter): Adapter {
  adapter.on("error", () => {});
  const duplicate = adapter.duplicate.bind(adapter);
  adapter.duplicate = (...args) => ignoringErrors(duplicate(...args));
  return adapter;
}

interface ErrorSource {
  on(event: "error", listener: () => void): unknown;
  duplicate(...args: readonly unknown[]): ErrorSource;
}

interface PingedClient {
  readonly isReady: boolean;
  ping(): Promise<unknown>;
  connect(): Promise<unknown>;
  destroy(): void;
}

/** Makes a client reconnect if a ping remains unanswered; pending commands then fail. */
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

/** On a separate connection: it may have to wait for another process that migrates. */
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
    // Tracked here, so that the connections can be closed even if the server does not respond.
    stream: () => {
      const socket = new Socket();
      sockets.add(socket);
      return socket.once("close", () => sockets.delete(socket));
    },
  });
  pool.on("error", report);
  // The pool listens to a connection only while it is idle, and an `error` event without a listener ends the process.
  pool.on("connect", (client) => client.on("error", report));
  // Every queue and worker adds a listener.
  pool.setMaxListeners(0);
  const { createPostgresBackend, createPostgresRelayBackend } = bullmq;
  const backend = backendOn(
    bullmq,
    { connection: pool, drainDelay: LOOK_SECONDS },
    createPostgresBackend,
    createPostgresRelayBackend,
    report,
    {
      // A pool connects on demand only.
      leave: () => {},
      close: () => {
        void pool.end();
        for (const socket of sockets) socket.destroy();
      },
    },
  );
  // Each of these keeps a connection of the pool while it listens.
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
  // BullMQ's types tie each class to one kind of server; the parts used here are the same on both.
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

/** The part of a server backend that a worker of BullMQ calls in its main loop. */
interface AskedBackend {
  moveToActive(...args: readonly unknown[]): Promise<unknown>;
  moveStalledJobsToWait(): Promise<readonly string[]>;
}

type BackendFactory = (...args: readonly unknown[]) => AskedBackend;

/**
 * Makes a worker wait after any error. BullMQ waits only after errors that it considers a lost connection; after others
 * it retries immediately. A client that is offline refuses commands synchronously, so the loop would spin in microtasks
 * and starve the timer that reconnects. BullMQ also checks for stalled jobs five seconds late after an error.
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
