import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { bullmqQueue, inProcessQueue, type ListenOptions, type RunQueue } from "../../src/workers/index.ts";
import { startPostgres } from "../../scripts/postgres.mjs";
import { redisMissing, startRedis } from "../../scripts/redis.mjs";
import { postgresUrl } from "../postgres-server.ts";
import { ioRedisClient, redisSkip, redisUrl } from "../redis-server.ts";
import { skipBecause } from "../skip.ts";

/** Creates queues that share messages, like those of several processes. */
type Makes = () => Promise<() => RunQueue>;

const backends: Readonly<Record<string, Makes>> = {
  "in process": async () => {
    const queue = inProcessQueue();
    return () => queue;
  },
  redis: async () => {
    const url = await redisUrl();
    return () => bullmqQueue({ url });
  },
  postgres: async () => {
    const url = await postgresUrl();
    return () => bullmqQueue({ url });
  },
};

let runners = 0;
/** A name that no other test notifies about: the tests of one server share it. */
const newRunner = (): string => `helper: ${++runners}/${process.pid}`;

/** Collects the notifications, and blocks each handler until it is released. */
class Heard {
  readonly sessions: string[] = [];
  readonly #held: (() => void)[] = [];
  atOnce = 0;
  atOnceMax = 0;

  readonly hold = async (sessionId: string): Promise<void> => {
    this.sessions.push(sessionId);
    this.atOnce += 1;
    this.atOnceMax = Math.max(this.atOnceMax, this.atOnce);
    await new Promise<void>((resolve) => this.#held.push(resolve));
    this.atOnce -= 1;
  };

  readonly note = async (sessionId: string): Promise<void> => {
    this.sessions.push(sessionId);
  };

  /** Releases the oldest handler. */
  release(): void {
    this.#held.shift()?.();
  }

  async hears(count: number): Promise<void> {
    await expect.poll(() => this.sessions.length).toBe(count);
  }
}

describe.for(Object.entries(backends))("a queue %s", ([name, makes]) => {
  const skip = name === "redis" ? redisSkip : null;
  const queues: RunQueue[] = [];
  const open = async (): Promise<RunQueue> => {
    const queue = (await makesOnce())();
    queues.push(queue);
    return queue;
  };
  let made: ReturnType<Makes> | null = null;
  const makesOnce: Makes = () => {
    made ??= makes();
    return made;
  };
  afterAll(async () => {
    await Promise.all([...new Set(queues)].map((queue) => queue.close()));
  });
  const listen = async (
    queue: RunQueue,
    names: readonly string[],
    handler: (sessionId: string, signal: AbortSignal) => Promise<void>,
    options: ListenOptions = {},
  ) => {
    const listening = await queue.listen(names, handler, { leaseMs: 2000, ...options });
    onTestFinished(() => listening.close());
    return listening;
  };
  const check = (title: string, run: () => Promise<void>): void =>
    test(title, (context) => {
      if (skip !== null) skipBecause(context, skip);
      return run();
    });

  check("keeps a notification until someone listens for its runner, and lets one of those hear it", async () => {
    const [one, other] = [await open(), await open()];
    const runner = newRunner();
    await one.notify("s-1", { runner });
    const [deaf, heard] = [new Heard(), new Heard()];
    await listen(other, [newRunner()], deaf.note);
    await listen(other, [runner], heard.note);
    await listen(one, [runner], heard.note);
    await heard.hears(1);
    for (const id of ["s-2", "s-3", "s-4"]) await one.notify(id, { runner });
    await heard.hears(4);
    expect([...heard.sessions].sort()).toEqual(["s-1", "s-2", "s-3", "s-4"]);
    expect(deaf.sessions).toEqual([]);
  });

  check("is notified once for a session that waits, and once more for one that is being answered", async () => {
    const queue = await open();
    const [runner, heard] = [newRunner(), new Heard()];
    for (let times = 0; times < 3; times++) await queue.notify("s", { runner });
    await listen(queue, [runner], heard.hold, { concurrency: 5 });
    await heard.hears(1);
    for (let times = 0; times < 3; times++) await queue.notify("s", { runner });
    await queue.notify("other", { runner });
    await heard.hears(2);
    expect(heard.sessions).toEqual(["s", "other"]);
    heard.release();
    await heard.hears(3);
    heard.release();
    heard.release();
    await expect.poll(async () => (await queue.counts()).active).toBe(0);
    expect(heard.sessions).toEqual(["s", "other", "s"]);
  });

  check("lets the lowest priority go first, and the first of equal ones", async () => {
    const queue = await open();
    const [runner, heard] = [newRunner(), new Heard()];
    const notified = { a3: 3, b1: 1, c2: 2, d1: 1, e0: 0 };
    for (const [id, priority] of Object.entries(notified)) await queue.notify(id, { runner, priority });
    await listen(queue, [runner], heard.note);
    await heard.hears(5);
    expect(heard.sessions).toEqual(["e0", "b1", "d1", "c2", "a3"]);
  });

  check("notifies later at the time that was said last, and meanwhile at once for who asks that", async () => {
    const queue = await open();
    const [runner, heard] = [newRunner(), new Heard()];
    await listen(queue, [runner], heard.note);
    const inMs = (ms: number) => ({ runner, at: new Date(Date.now() + ms) });
    await queue.notify("s", inMs(3_600_000));
    await queue.notify("s", { runner });
    await heard.hears(1);
    const dueMs = Date.now() + 300;
    await queue.notify("s", inMs(300));
    await heard.hears(2);
    expect(Date.now()).toBeGreaterThanOrEqual(dueMs - 20);
    await queue.notify("s", inMs(-1000));
    await heard.hears(3);
  });

  check("answers so many at once as it was told, for all runners together", async () => {
    const queue = await open();
    const [first, second, heard] = [newRunner(), newRunner(), new Heard()];
    await listen(queue, [first, second], heard.hold, { concurrency: 3 });
    for (let index = 0; index < 8; index++)
      await queue.notify(`s-${index}`, { runner: index % 2 === 0 ? first : second });
    for (let done = 0; done < 8; done++) {
      await heard.hears(Math.min(8, done + 3));
      heard.release();
    }
    expect(heard.atOnceMax).toBe(3);
    expect(new Set(heard.sessions).size).toBe(8);
  });

  check("takes a handler that fails for an answer", async () => {
    const queue = await open();
    const [runner, heard] = [newRunner(), new Heard()];
    await listen(queue, [runner], async (sessionId) => {
      await heard.note(sessionId);
      throw new Error("It went wrong.");
    });
    await queue.notify("s-1", { runner });
    await heard.hears(1);
    await queue.notify("s-1", { runner });
    await queue.notify("s-2", { runner });
    await heard.hears(3);
    expect([...heard.sessions].sort()).toEqual(["s-1", "s-1", "s-2"]);
  });

  check("counts what waits, what is answered, and what is for later", async () => {
    const queue = await open();
    const [runner, heard] = [newRunner(), new Heard()];
    const before = await queue.counts();
    await listen(queue, [runner], heard.hold);
    await queue.notify("s-1", { runner });
    await heard.hears(1);
    await queue.notify("s-2", { runner });
    await queue.notify("s-3", { runner, priority: 4 });
    await queue.notify("s-4", { runner, at: new Date(Date.now() + 3_600_000) });
    const { waiting, active, delayed } = await queue.counts();
    expect([waiting - before.waiting, active - before.active, delayed - before.delayed]).toEqual([2, 1, 1]);
    for (let done = 0; done < 3; done++) {
      await heard.hears(done + 1);
      heard.release();
    }
  });

  check("notifies its listeners that it closes, and waits for running handlers", async () => {
    const queue = await open();
    const [runner, heard] = [newRunner(), new Heard()];
    let told = false;
    const listening = await listen(queue, [runner], (sessionId, signal) => {
      signal.addEventListener("abort", () => {
        told = true;
      });
      return heard.hold(sessionId);
    });
    await queue.notify("s-1", { runner });
    await heard.hears(1);
    let closed = false;
    const closing = listening.close().then(() => {
      closed = true;
    });
    await expect.poll(() => told).toBe(true);
    await queue.notify("s-1", { runner });
    await queue.notify("s-2", { runner });
    expect(closed).toBe(false);
    heard.release();
    await closing;
    expect(heard.sessions).toEqual(["s-1"]);
    const next = new Heard();
    await listen(queue, [runner], next.note);
    await next.hears(2);
    expect([...next.sessions].sort()).toEqual(["s-1", "s-2"]);
  });

  check("tells what is published to all who subscribed, in order, and to nobody who has left", async () => {
    const [one, other] = [await open(), await open()];
    const topic = `run.${newRunner().replaceAll(/\W/g, "")}`;
    const heard: string[][] = [[], [], []];
    const [first] = await Promise.all(
      heard.map((texts, index) =>
        (index === 0 ? one : other).subscribe(topic, (data) => texts.push(Buffer.from(data).toString())),
      ),
    );
    const texts = Array.from({ length: 50 }, (_, index) => `${index} ü`);
    for (const text of texts) void one.publish(topic, Buffer.from(text));
    await expect.poll(() => heard).toEqual([texts, texts, texts]);
    await first?.close();
    await one.publish(topic, Buffer.from("more"));
    await expect.poll(() => heard[1]?.at(-1)).toBe("more");
    expect(heard[0]).toEqual(texts);
    await one.publish("run.nobody", Buffer.from("?"));
  });

  check("carries what is as large as a long answer", async () => {
    const [one, other] = [await open(), await open()];
    const topic = `run.${newRunner().replaceAll(/\W/g, "")}`;
    const sizes: number[] = [];
    await other.subscribe(topic, (data) => sizes.push(data.length));
    for (let index = 0; index < 12; index++) void one.publish(topic, Buffer.alloc(100_000 + index, "x"));
    await expect.poll(() => sizes).toEqual(Array.from({ length: 12 }, (_, index) => 100_000 + index));
    await pause(0);
  });
});

test("an invalid address is refused without showing its password", () => {
  expect(() => bullmqQueue({ url: "http://me:secret@host/" })).toThrow(/names no queue/);
  expect(() => bullmqQueue({ url: "http://me:secret@host/" })).not.toThrow(/secret/);
});

test.for(["redis://127.0.0.1:1", "postgres://127.0.0.1:1/none"])(
  "an unreachable server at %s is reported when the queue is first notified",
  async (url) => {
    const queue = bullmqQueue({ url });
    await expect(queue.notify("s", { runner: "a" })).rejects.toMatchObject({ code: "STORE_FAILED" });
    await queue.close();
  },
);

test("an outage of a server is reported once, and once more after a recovery", async (context) => {
  const missing = redisMissing();
  if (missing !== null) skipBecause(context, missing);
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const queue = bullmqQueue({ url: redis.url });
  onTestFinished(() => queue.close());
  const [told, untold, heard]: [string[], string[], Heard] = [[], [], new Heard()];
  queue.onError(({ code, message }) => told.push(`${code}: ${message}`));
  queue.onError(({ message }) => untold.push(message))();
  await queue.subscribe("run.any", () => {});
  await queue.listen(["a", "b"], heard.note, { leaseMs: 2000 });
  const notifies = async (sessionId: string): Promise<boolean> =>
    queue.notify(sessionId, { runner: "a" }).then(
      () => true,
      () => false,
    );
  for (const times of [1, 2]) {
    await redis.halt();
    await expect.poll(() => told.length).toBe(times);
    await redis.resume();
    await expect.poll(() => notifies(`s-${times}`)).toBe(true);
    await expect.poll(() => heard.sessions).toContain(`s-${times}`);
    // An error-free time of this length counts as a recovery.
    await pause(6500);
    expect(told).toHaveLength(times);
  }
  expect(told[0]).toMatch(/^STORE_FAILED: The queue at 127\.0\.0\.1:\d+ has failed, and is tried again: ./);
  expect(untold).toEqual([]);
});

test.for(["redis", "postgres"])("a queue whose %s is away closes within ten seconds", async (kind, context) => {
  const missing = kind === "redis" ? redisMissing() : null;
  if (missing !== null) skipBecause(context, missing);
  const server = await (kind === "redis" ? startRedis() : startPostgres());
  onTestFinished(() => server.stop());
  const queue = bullmqQueue({ url: server.url });
  await queue.subscribe("run.any", () => {});
  await queue.listen(["a", "b"], async () => {}, { leaseMs: 2000 });
  await queue.notify("s-1", { runner: "a" });
  await server.halt();
  await queue.publish("run.any", Buffer.from("words"));
  const begin = performance.now();
  await queue.close();
  expect(performance.now() - begin).toBeLessThan(10_000);
});

/** Notifies the queue about 600 sessions, forty at a time, and answers them. */
async function notifyMany(queue: RunQueue, runners: readonly string[]): Promise<void> {
  const heard = new Heard();
  await queue.listen(runners, heard.note, { concurrency: 40, leaseMs: 10_000 });
  for (let from = 0; from < 600; from += 40) {
    const ids = Array.from({ length: 40 }, (_, index) => from + index);
    await Promise.all(ids.map((id) => queue.notify(`s-${id}`, { runner: runners[id % runners.length] as string })));
  }
  // A notification whose handler takes longer than a part of the lease is renewed.
  await expect.poll(() => new Set(heard.sessions).size).toBe(600);
}

test("on Redis, unread events of BullMQ are not kept", async (context) => {
  if (redisSkip !== null) skipBecause(context, redisSkip);
  const queue = bullmqQueue({ url: await redisUrl() });
  onTestFinished(() => queue.close());
  const runner = newRunner();
  await notifyMany(queue, [runner]);
  const redis = await ioRedisClient();
  expect(await redis.xlen(`{skein}:runs.${encodeURIComponent(runner)}:events`)).toBeLessThan(300);
});

/** The address of a database that no other test counts in. */
async function ownDatabase(): Promise<string> {
  const url = new URL(await postgresUrl());
  const name = `queue_${process.pid}`;
  const client = new Client(url.href);
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  url.pathname = `/${name}`;
  return url.href;
}

test("on PostgreSQL, unread events of BullMQ are not kept, and a queue has a connection for each runner and five more", async () => {
  const url = await ownDatabase();
  const client = new Client(url);
  await client.connect();
  onTestFinished(() => client.end());
  const queue = bullmqQueue({ url });
  onTestFinished(() => queue.close());
  const count = async (from: string): Promise<number> =>
    Number((await client.query(`SELECT count(*) FROM ${from}`)).rows[0].count);
  const connections = "pg_stat_activity WHERE datname = current_database()";
  const before = await count(connections);
  await queue.subscribe("run.any", () => {});
  await notifyMany(
    queue,
    Array.from({ length: 6 }, () => newRunner()),
  );
  expect((await count(connections)) - before).toBeLessThanOrEqual(6 + 5);
  // Events over a queue's limit are deleted with every 256th event of the database, of any queue.
  expect(await count("bullmq.meta WHERE field = 'opts.maxLenEvents' AND value = '1'")).toBe(6);
  expect(await count("bullmq.meta WHERE field = 'opts.maxLenEvents'")).toBe(6);
});
