import type { SessionHead } from "../../src/session/log/fold.ts";
import type { Redis } from "ioredis";
import { expect, onTestFinished } from "vitest";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import type { RedisClient } from "../../src/stores/redis/index.ts";
import { REPLACE_RECORD } from "../../src/stores/redis/index-scripts.ts";
import { KeyNames } from "../../src/stores/redis/key-names.ts";
import { openRedis } from "../../src/stores/redis/open-redis.ts";
import { RedisHandle, type RedisScript } from "../../src/stores/redis/redis-handle.ts";
import { CREATE, END_GENERATION, ROW_AT } from "../../src/stores/redis/session-scripts.ts";
import { SessionWatchers } from "../../src/stores/redis/session-watchers.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { redisUrl } from "../redis-server.ts";
import { newPrefix, openClient, openStore, ownServerTest, redisTest, startServer } from "./redis-support.ts";
import { message, until } from "./store-support.ts";

redisTest("makes no session with a mark that was taken away while its maker was slow", async () => {
  const { store, client, names, openSlow } = await setUp();
  const slow = await openSlow(CREATE, async () => settle(store, client, names));
  const head = await slow.create(createHeader({ id: "late", userId: "u" }));
  expect((await store.list({ userId: "u" })).items).toEqual([head]);
});

redisTest("leaves a session marked that was written to just before its mark would have gone", async () => {
  const { store, client, names, openSlow } = await setUp();
  await store.create(createHeader({ id: "a" }));
  const slow = await openSlow(END_GENERATION, async () => {
    await store.append("a", [{ type: "status", status: "suspended" }]);
  });
  await until(async () => {
    await slow.list();
    return (await store.head("a"))?.version === 1;
  }, "an append between");
  expect(await client.zrange(names.index("unsettled"), "0", "-1")).toEqual(["a"]);
  expect(await slow.count({ status: "suspended" })).toBe(1);
});

redisTest("never replaces what the index holds by what a session was before", async () => {
  const { store, client, names, openSlow } = await setUp();
  await store.create(createHeader({ id: "a", userId: "u" }));
  const slow = await openSlow(REPLACE_RECORD, async () => {
    await store.append("a", [{ type: "status", status: "suspended" }]);
    await settle(store, client, names);
  });
  await slow.list();
  expect([await store.count({ status: "suspended" }), await store.count({ status: "active" })]).toEqual([1, 0]);
});

redisTest("misses a session that is purged while it is read, and fails over none", async () => {
  const { store, openSlow } = await setUp();
  for (const read of [
    async (slow: SessionStore) => slow.head("a"),
    async (slow: SessionStore) => (await slow.list()).items[0] ?? null,
  ]) {
    await store.create(createHeader({ id: "a" }), { entries: [message] });
    const slow = await openSlow(ROW_AT, async () => {
      await store.delete("a");
      await store.purge("9999-12-31T23:59:59.999Z");
    });
    expect(await read(slow)).toBeNull();
  }
});

redisTest("keeps appends of several entries through two handles apart, and what they set", async () => {
  const { store, prefix } = await setUp();
  const other = await openStore({ url: await redisUrl(), prefix });
  await store.create(createHeader({ id: "a" }));
  await Promise.all(
    Array.from({ length: 40 }, (_, i) =>
      (i % 2 === 0 ? store : other).append("a", [
        message,
        { type: "variables", set: { [`v${i}`]: i }, unset: [] },
        message,
      ]),
    ),
  );
  const fresh = await openStore({ url: await redisUrl(), prefix });
  const head = (await fresh.head("a")) as SessionHead;
  const { variables } = await fresh.settings("a", head.path);
  expect([head.version, Object.keys(variables).length]).toEqual([120, 40]);
  expect(await store.head("a")).toEqual(head);
  await checkHeadIsFold(fresh, "a");
});

redisTest("plans anew where a server has lost writes, also when as many others came instead", async () => {
  const { store, client, prefix } = await setUp();
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [{ ...message, id: "1" }]);
  const keys = await client.keys(`${prefix}:*{a}*`);
  const saved = await Promise.all(keys.map(async (key) => [key, (await client.dumpBuffer(key)) as Buffer] as const));
  await store.append("a", [{ ...message, id: "lost" }]);
  for (const [key, bytes] of saved) await client.restore(key, 0, bytes, "REPLACE");
  const other = await openStore({ url: await redisUrl(), prefix });
  await other.append("a", [{ ...message, id: "2" }]);
  const { entries } = await store.append("a", [{ ...message, id: "3" }]);
  expect([entries[0]?.seq, entries[0]?.parentId]).toEqual([2, "2"]);
  await checkHeadIsFold(store, "a");
});

redisTest("tells of every write to a session: one entry, several, its deletion and its return", async () => {
  const { store, client, names } = await setUp();
  const subscriber = client.duplicate();
  onTestFinished(() => subscriber.disconnect());
  let told = 0;
  subscriber.on("message", () => {
    told += 1;
  });
  await subscriber.subscribe(names.session("a"));
  await store.create(createHeader({ id: "a" }));
  const writes = [
    () => store.append("a", [message]),
    () => store.append("a", [message, message]),
    () => store.delete("a"),
    () => store.undelete("a"),
  ];
  for (const [index, write] of writes.entries()) {
    await write();
    await until(async () => told === index + 1, `a word of write ${index}`);
  }
});

ownServerTest("wakes everybody once the server is back, as nobody knows what was missed", async () => {
  const server = await startServer();
  const handle = new RedisHandle(await openRedis(server.url), "here", "skein");
  const watchers = new SessionWatchers(handle);
  onTestFinished(async () => {
    watchers.close();
    await handle.close();
  });
  const woken = [0, 0];
  for (const i of [0, 1]) await watchers.subscribe(`s${i}`, () => void (woken[i] = (woken[i] ?? 0) + 1));
  await server.halt();
  expect(woken).toEqual([0, 0]);
  await server.resume();
  await until(async () => woken.every((count) => count > 0), "waking");
});

interface SetUp {
  readonly store: SessionStore;
  readonly client: Redis;
  readonly prefix: string;
  readonly names: KeyNames;
  /** Another handle, which calls a function right before it runs a script for the first time. */
  openSlow(script: RedisScript, before: () => Promise<void>): Promise<SessionStore>;
}

async function setUp(): Promise<SetUp> {
  const [url, prefix, client] = [await redisUrl(), newPrefix(), await openClient()];
  const openSlow = (script: RedisScript, before: () => Promise<void>): Promise<SessionStore> => {
    let happened = false;
    const slow: RedisClient = {
      async call(command: string, ...args: string[]) {
        if (args[0] === script.sha && !happened) {
          happened = true;
          await before();
        }
        return client.call(command, ...args);
      },
      duplicate: () => client.duplicate(),
    };
    return openStore({ client: slow, prefix });
  };
  return { store: await openStore({ url, prefix }), client, prefix, names: new KeyNames(prefix), openSlow };
}

/** Lists until every session is settled and no mark is left. */
async function settle(store: SessionStore, client: Redis, names: KeyNames): Promise<void> {
  await until(async () => {
    await store.list();
    return (await client.zcard(names.index("unsettled"))) === 0;
  }, "a settled index");
}
