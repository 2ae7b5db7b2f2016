import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { Redis } from "ioredis";
import type { RedisServer } from "../../scripts/redis.mjs";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openStore as openStoreOf } from "../../src/stores/open-store.ts";
import { openRedisStore } from "../../src/stores/redis/index.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { freePort } from "../../scripts/test-server.mjs";
import { redisUrl } from "../redis-server.ts";
import { expectFinished } from "./faulted-runs.ts";
import { DURABLE, newPrefix, openClient, openStore, ownServerTest, redisTest, startServer } from "./redis-support.ts";
import { entriesOf, message, refusalOf, until } from "./store-support.ts";

const clients: Readonly<Record<string, (server: RedisServer) => Promise<SessionStore>>> = {
  "its own client": (server) => openStore({ url: server.url }),
  "ioredis, which sends again what was not answered": async (server) =>
    openStore({ client: await openClient(server.url) }),
};

for (const [name, open] of Object.entries(clients)) {
  ownServerTest(
    `keeps what it acknowledged, once each and in order, over a server that ends, with ${name}`,
    async () => {
      const server = await startServer(DURABLE);
      const store = await open(server);
      await store.create(createHeader({ id: "a" }));
      const acknowledged: string[] = [];
      const codes = new Set<string>();
      let writing = true;
      const writer = (async () => {
        for (let i = 0; writing || acknowledged.length < 100; i++) {
          const id = `e${i}`;
          for (;;) {
            const refusal = await refusalOf(store.append("a", [{ ...message, id }]));
            codes.add(refusal.code);
            if (refusal.code === "done") break;
          }
          acknowledged.push(id);
        }
      })();
      for (let round = 0; round < 4; round++) {
        const before = acknowledged.length;
        await until(async () => acknowledged.length > before + 20, "writing");
        if (round % 2 === 0) {
          server.crash();
          await server.halt();
        } else await server.halt();
        await server.resume();
      }
      writing = false;
      await writer;
      expect([...codes].filter((code) => code !== "done" && code !== "STORE_FAILED")).toEqual([]);
      expect((await entriesOf(store, "a")).map(({ id }) => id)).toEqual(acknowledged);
      await checkHeadIsFold(store, "a");
      expect((await store.list()).items).toEqual([await store.head("a")]);
    },
  );

  ownServerTest(`goes on watching over a server that ends, and misses nothing, with ${name}`, async () => {
    const server = await startServer(DURABLE);
    const [watching, writing] = [await open(server), await openStore({ url: server.url })];
    await writing.create(createHeader({ id: "a" }));
    const seen: string[] = [];
    const end = new AbortController();
    const watched = (async () => {
      for await (const { id } of watching.watch("a", { after: -1, signal: end.signal })) seen.push(id);
    })();
    for (let i = 0; i < 30; i++) {
      if (i % 10 === 5) {
        server.crash();
        await server.halt();
        await server.resume();
      }
      await until(
        async () => (await refusalOf(writing.append("a", [{ ...message, id: `e${i}` }]))).code === "done",
        "it",
      );
    }
    await until(async () => seen.length >= 30, "seeing all");
    expect(seen).toEqual(Array.from({ length: 30 }, (_, i) => `e${i}`));
    end.abort();
    await watched;
  });
}

ownServerTest(
  "refuses what the server has no memory for, changes nothing, and goes on when there is room",
  async () => {
    const server = await startServer();
    const [store, client] = [await openStore({ url: server.url }), await openClient(server.url)];
    await store.create(createHeader({ id: "a" }));
    await store.append("a", [message]);
    const used = Number(/used_memory:(\d+)/.exec(await client.info("memory"))?.[1]);
    await client.config("SET", "maxmemory", String(used + 2_000_000));
    const large = { type: "message", message: { role: "user", content: "x".repeat(50_000) } } as const;
    let refusal = { code: "done", message: "" };
    let version = 1;
    for (let i = 0; refusal.code === "done" && i < 1000; i++) {
      refusal = await refusalOf(store.append("a", [large, large, large]));
      if (refusal.code === "done") version += 3;
    }
    expect(refusal).toMatchObject({ code: "STORE_FAILED", message: expect.stringContaining("no memory left") });
    expect(version).toBeGreaterThan(1);
    await client.config("SET", "maxmemory", "1mb");
    expect(await refusalOf(store.create(createHeader({ id: "b" })))).toMatchObject({ code: "STORE_FAILED" });
    expect(await refusalOf(store.fork("a", createHeader({ id: "f" })))).toMatchObject({ code: "STORE_FAILED" });
    expect([(await store.head("a"))?.version, await store.head("b"), await store.head("f")]).toEqual([
      version,
      null,
      null,
    ]);
    expect((await store.list()).items.map(({ version: each }) => each)).toEqual([version]);
    await checkHeadIsFold(store, "a");
    await client.config("SET", "maxmemory", "0");
    await store.append("a", [large]);
    await store.create(createHeader({ id: "b" }));
    expect((await store.list()).items.map(({ header, version: each }) => [header.id, each]).sort()).toEqual([
      ["a", version + 1],
      ["b", 0],
    ]);
    await checkHeadIsFold(store, "a");
  },
);

ownServerTest("goes on when the server forgets its scripts", async () => {
  const server = await startServer();
  const [store, client] = [await openStore({ url: server.url }), await openClient(server.url)];
  await store.create(createHeader({ id: "a" }));
  for (let i = 0; i < 20; i++) {
    await client.script("FLUSH", "SYNC");
    await store.append("a", [message]);
    await client.script("FLUSH", "SYNC");
    expect((await store.list()).items[0]?.version).toBe(i + 1);
  }
  await checkHeadIsFold(store, "a");
});

ownServerTest("reads a replica, and refuses to write to one with the reason", async () => {
  // Without the delay in which further replicas could join.
  const primary = await startServer(["--repl-diskless-sync-delay", "0"]);
  const replica = await startServer(["--replicaof", "127.0.0.1", String(primary.port)]);
  const store = await openStore({ url: primary.url });
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [message]);
  const client = await openClient(replica.url);
  await until(async () => (await client.exists("skein:s:{a}")) === 1, "the copy");
  const copy = await openStore({ url: replica.url });
  await until(async () => (await copy.head("a"))?.version === 1, "the copy");
  expect((await copy.list()).items.map(({ header, version }) => [header.id, version])).toEqual([["a", 1]]);
  const writes = [
    () => copy.append("a", [message]),
    () => copy.create(createHeader({ id: "b" })),
    () => copy.delete("a"),
  ];
  for (const write of writes) {
    expect(await refusalOf(write())).toMatchObject({
      code: "STORE_FAILED",
      message: `The Redis server redis://127.0.0.1:${replica.port} is a read-only replica; connect to the primary.`,
    });
  }
  expect(await refusalOf(openRedisStore({ url: replica.url, prefix: "other" }))).toMatchObject({
    code: "STORE_FAILED",
    message: expect.stringContaining("connect to the primary"),
  });
});

ownServerTest("refuses to write while too few replicas follow, and lists all the same", async () => {
  const server = await startServer();
  const [store, client] = [await openStore({ url: server.url }), await openClient(server.url)];
  await store.create(createHeader({ id: "a" }));
  await client.config("SET", "min-replicas-to-write", "1");
  expect(await refusalOf(store.append("a", [message]))).toMatchObject({
    code: "STORE_FAILED",
    message: `The Redis server redis://127.0.0.1:${server.port} accepts no writes because too few replicas are connected; try again when they are.`,
  });
  expect((await store.list()).items.map(({ header, version }) => [header.id, version])).toEqual([["a", 0]]);
  await client.config("SET", "min-replicas-to-write", "0");
  await store.append("a", [message]);
  expect((await store.list()).items[0]?.version).toBe(1);
});

ownServerTest("opens on no server that removes keys to make room", async () => {
  const server = await startServer(["--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"]);
  expect(await refusalOf(openRedisStore({ url: server.url }))).toMatchObject({
    code: "STORE_FAILED",
    message: expect.stringContaining("set it to noeviction"),
  });
  const client = await openClient(server.url);
  await client.config("SET", "maxmemory-policy", "volatile-lru");
  await (await openStore({ url: server.url })).ping();
  expect(await refusalOf(openRedisStore({ url: server.url, ttlSeconds: 60 }))).toMatchObject({ code: "STORE_FAILED" });
});

redisTest("opens no keys of a later version", async () => {
  const [prefix, client] = [newPrefix(), await openClient()];
  await client.set(`${prefix}:i:{${prefix}}:layout`, "5");
  expect(await refusalOf(openRedisStore({ url: await redisUrl(), prefix }))).toMatchObject({
    code: "UNSUPPORTED_VERSION",
    message: expect.stringContaining("update skein"),
  });
});

ownServerTest("says in one sentence why a server cannot be used, and never a password", async () => {
  const server = await startServer();
  const { port } = server;
  const free = await freePort();
  const expected: readonly (readonly [url: string, code: string, message: string])[] = [
    [`redis://127.0.0.1:${port}`, "STORE_FAILED", `The Redis server redis://127.0.0.1:${port} asks for a password;`],
    [
      `redis://:s3cret@127.0.0.1:${port}`,
      "STORE_FAILED",
      `The Redis server redis://127.0.0.1:${port} does not accept this user name and password;`,
    ],
    [
      `redis://me:s3cret@127.0.0.1:${free}`,
      "STORE_FAILED",
      `The Redis server redis://127.0.0.1:${free} cannot be reached:`,
    ],
    [
      "redis://me:s3cret@nowhere.invalid",
      "STORE_FAILED",
      "The Redis server redis://nowhere.invalid cannot be reached:",
    ],
    ["redis://me:s3cret@ho st:1", "INVALID_OPTION", "The url of a Redis store must look like"],
    ["redis://me:s3cret@host/data", "INVALID_OPTION", "The url of a Redis store must look like"],
    ["http://me:s3cret@host", "INVALID_OPTION", "The url of a Redis store must look like"],
    ["s3cret", "INVALID_OPTION", "The url of a Redis store must look like"],
  ];
  for (const [url, code, text] of expected) {
    const refusal = await refusalOf(openRedisStore({ url }));
    expect(refusal).toMatchObject({ code, message: expect.stringContaining(text) });
    expect(refusal.message).toMatch(/^[^.].*\.$/);
    expect(`${refusal.message} ${JSON.stringify(refusal)}`).not.toContain("s3cret");
  }
});

ownServerTest(
  "says that a server lacks a command, or that its user may not give it, and makes no session",
  async () => {
    const bare = await startServer(["--rename-command", "EVALSHA", ""]);
    expect(await refusalOf(createAt(bare.url))).toMatchObject({
      code: "STORE_FAILED",
      message: `The Redis server redis://127.0.0.1:${bare.port} does not know a command that the store needs; use Redis 7 or Valkey.`,
    });
    const strict = await startServer();
    const client = await openClient(strict.url);
    await client.call("ACL", "SETUSER", "reader", "on", ">s3cret", "~*", "&*", "+@all", "-@scripting");
    expect(await refusalOf(createAt(`redis://reader:s3cret@127.0.0.1:${strict.port}`))).toMatchObject({
      code: "STORE_FAILED",
      message: expect.stringMatching(
        / does not allow this user a command or key that the store needs; extend [^.]+\.$/,
      ),
    });
    expect(await (await openClient(bare.url)).keys("skein:s:*")).toEqual([]);
    expect(await client.keys("skein:s:*")).toEqual([]);
  },
);

async function createAt(url: string): Promise<void> {
  await using store = await openRedisStore({ url });
  await store.create(createHeader({ id: "a" }));
}

ownServerTest("refuses calls with a typed error while the server is away, and closes without it", async () => {
  const server = await startServer();
  const store = await openStore({ url: server.url });
  await store.create(createHeader({ id: "a" }));
  await server.halt();
  const calls = [store.append("a", [message]), store.head("a"), store.list(), store.ping()].map(refusalOf);
  for (const call of calls) {
    expect(await call).toMatchObject({
      code: "STORE_FAILED",
      message: expect.stringMatching(/cannot be reached|lost the connection|closed the connection/),
    });
  }
  await store.close();
  expect(await refusalOf(store.ping())).toMatchObject({ code: "STORE_CLOSED" });
});

ownServerTest("is what a URL opens", async () => {
  const server = await startServer();
  await using store = await openStoreOf(`${server.url}/1`);
  expect(store.capabilities).toMatchObject({ durable: true, shared: true, forkByReference: true, watch: "push" });
  await store.create(createHeader({ id: "a" }));
  expect((await (await openStore({ url: `${server.url}/1` })).head("a"))?.version).toBe(0);
  expect(await (await openStore({ url: server.url })).head("a")).toBeNull();
});

test("refuses options that make no sense, without a server", async () => {
  const wrong: readonly unknown[] = [
    null,
    { url: 7 },
    { prefix: "" },
    { prefix: "a{b}" },
    { prefix: "x".repeat(65) },
    { ttlSeconds: 0 },
    { ttlSeconds: 1.5 },
    { clock: 7 },
    { client: {} },
    { client: { sendCommand: () => {} } },
    { url: "redis://127.0.0.1", client: new Redis({ lazyConnect: true }) },
  ];
  for (const options of wrong) {
    expect(await refusalOf(openRedisStore(options as never)), JSON.stringify(options)).toMatchObject({
      code: "INVALID_OPTION",
    });
  }
});

ownServerTest(
  "all runs finish and no effect happens twice when the Redis server accepts no writes for moments, as during a failover",
  async () => {
    const server = await startServer();
    const client = await openClient(server.url);
    await expectFinished(await openStore({ url: server.url }), async () => {
      for (let times = 0; times < 60; times++) {
        await client.config("SET", "min-replicas-to-write", String((times + 1) % 2));
        await pause(5);
      }
    });
  },
);
