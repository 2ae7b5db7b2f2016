import { Redis } from "ioredis";
import { createClient } from "redis";
import { expect, onTestFinished } from "vitest";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { Checkpoint } from "../../src/session/store.ts";
import type { RedisClient } from "../../src/stores/redis/index.ts";
import { checkHeadIsFold } from "../../src/testing/index.ts";
import { redisUrl } from "../redis-server.ts";
import { keysOf, newPrefix, openClient, openStore, redisTest } from "./redis-support.ts";
import { entriesOf, message, refusalOf, until } from "./store-support.ts";

const FAR = "9999-12-31T23:59:59.999Z";
const HOSTILE = ["user:bob", "{a}", "}{", "__proto__", " ", "a:s:{b}", "*", "x".repeat(512), "ключ"];

redisTest(
  "keeps all keys of a session in one slot, and those of the index in another, whatever names are like",
  async () => {
    const [url, prefix, client] = [await redisUrl(), newPrefix(), await openClient()];
    const store = await openStore({ url, prefix });
    for (const [index, name] of HOSTILE.entries()) {
      const id = `s${index}`;
      await store.create(createHeader({ id, userId: name, cwd: name }));
      await store.append(id, [{ ...message, id: name }]);
      await store.saveCheckpoint(checkpointOf(name, id));
      await store.lease(id, name, 60_000);
      await store.fork(id, createHeader({ id: `f${index}`, userId: name }), { at: name, maxForks: 5 });
    }
    const tags = new Map<string, number>();
    for (const key of await keysOf(client, prefix)) {
      const tag = tagOf(key);
      tags.set(tag, (tags.get(tag) ?? 0) + 1);
    }
    const sessions = HOSTILE.flatMap((_, index) => [`s${index}`, `f${index}`]);
    expect([...tags.keys()].sort()).toEqual([prefix, ...sessions].sort());
    // A session has its hash, log, positions, checkpoints, lease and forks.
    for (const [index] of HOSTILE.entries()) expect(tags.get(`s${index}`)).toBe(6);
    for (const [index, name] of HOSTILE.entries()) {
      const { items } = await store.list({ userId: name, cwd: name });
      expect(items.map(({ header }) => header.id)).toEqual([`s${index}`]);
      expect(await store.count({ userId: name, status: "active" })).toBe(2);
    }
  },
);

redisTest("leaves no key behind of what was purged", async () => {
  const [url, prefix, client] = [await redisUrl(), newPrefix(), await openClient()];
  const store = await openStore({ url, prefix });
  const before = await keysOf(client, prefix);
  await store.create(createHeader({ id: "a", userId: "u", cwd: "/x" }), { maxOpenPerUser: 9 });
  await store.append(
    "a",
    Array.from({ length: 1200 }, (_, i) => ({ ...message, id: `e${i}` })),
  );
  await store.saveCheckpoint(checkpointOf("c", "a"));
  await store.lease("a", "run", 60_000);
  await store.fork("a", createHeader({ id: "f", userId: "u" }), { at: "e99", maxForks: 3 });
  await store.append("f", [message]);
  await store.fork("f", createHeader({ id: "g" }));
  await store.delete("a");
  expect(await store.purge(FAR)).toBe(1);
  // Only the entries of the source that its fork inherited are left, and the fork has them.
  const [log] = (await keysOf(client, prefix)).filter((key) => key.startsWith(`${prefix}:e:{a}`));
  expect(await client.xlen(log as string)).toBe(100);
  expect(await client.hlen((log as string).replace(":e:", ":n:"))).toBe(100);
  await checkHeadIsFold(store, "f");
  await store.delete("f");
  expect(await store.purge(FAR)).toBe(1);
  expect((await entriesOf(store, "g")).length).toBe(101);
  await checkHeadIsFold(store, "g");
  await store.delete("g");
  expect(await store.purge(FAR)).toBe(1);
  // Marks are removed later, and the key that blocks late writers expires.
  await until(async () => {
    await store.list();
    return (await keysOf(client, prefix)).every((key) => before.includes(key) || key.startsWith(`${prefix}:g:`));
  }, "an empty store");
  for (const key of await keysOf(client, prefix))
    if (!before.includes(key)) expect(await client.ttl(key)).toBeGreaterThan(0);
});

redisTest("shows everything that was written, also when its writer died before the index knew", async () => {
  const [url, prefix, client] = [await redisUrl(), newPrefix(), await openClient()];
  const [store, other] = [await openStore({ url, prefix }), await openStore({ url, prefix })];
  const unsettled = `${prefix}:i:{${prefix}}:unsettled`;
  await store.create(createHeader({ id: "a", userId: "u" }));
  await until(async () => {
    await other.list();
    return (await client.zcard(unsettled)) === 0;
  }, "a settled session");
  // The session has no mark now: the next append must set it again before it writes.
  const { head } = await store.append("a", [{ type: "status", status: "suspended" }]);
  expect(await client.zrange(unsettled, "0", "-1")).toEqual(["a"]);
  expect((await other.list({ status: "suspended" })).items).toEqual([head]);
  expect([await other.count({ status: "active" }), await other.count({ userId: "u", status: "suspended" })]).toEqual([
    0, 1,
  ]);
});

redisTest("takes the mark of someone who died away, and lets nobody make a session on it", async () => {
  const [url, prefix, client] = [await redisUrl(), newPrefix(), await openClient()];
  const store = await openStore({ url, prefix });
  const unsettled = `${prefix}:i:{${prefix}}:unsettled`;
  await client.zadd(unsettled, "0", "ghost");
  expect([await store.count(), (await store.list()).items]).toEqual([0, []]);
  await until(async () => {
    await store.list();
    return (await client.zcard(unsettled)) === 0;
  }, "the end of the mark");
  expect(await client.get(`${prefix}:g:{ghost}`)).toBe("1");
  const head = await store.create(createHeader({ id: "ghost" }));
  expect((await store.list()).items).toEqual([head]);
});

redisTest("gives a place back that someone took and never used, and counts what was made with it", async () => {
  const [url, prefix, client] = [await redisUrl(), newPrefix(), await openClient()];
  const store = await openStore({ url, prefix });
  const reserved = `${prefix}:i:{${prefix}}:reserved-open:u`;
  await store.create(createHeader({ id: "there", userId: "u" }));
  // One process died before it created a session, another after it, both long ago; one has just created a session, and
  // one is about to.
  await client.zadd(
    reserved,
    "1",
    "never x",
    "2",
    "there y",
    String(Date.now()),
    "there z",
    String(Date.now()),
    "soon z",
  );
  expect(await refusalOf(store.create(createHeader({ userId: "u" }), { maxOpenPerUser: 2 }))).toMatchObject({
    code: "CAPACITY",
  });
  await store.create(createHeader({ userId: "u" }), { maxOpenPerUser: 3 });
  expect(await client.zrange(reserved, "0", "-1")).toEqual(["soon z", "there z"]);
  expect(await client.get(`${prefix}:g:{never}`)).toBe("1");
});

redisTest("gives a place back at once when another limit keeps the session from being made", async () => {
  const store = await openStore({ url: await redisUrl(), prefix: newPrefix() });
  await store.create(createHeader({ id: "s", userId: "u" }));
  const full = store.fork("s", createHeader({ userId: "u" }), { maxForks: 1, maxOpenPerUser: 1 });
  expect(await refusalOf(full)).toMatchObject({ code: "CAPACITY" });
  await store.fork("s", createHeader({ id: "f" }), { maxForks: 1 });
  expect(await store.count({ parentId: "s" })).toBe(1);
});

redisTest("lets a session that is given a time run out with all its keys, and is not told of it again", async () => {
  const [url, prefix, client] = [await redisUrl(), newPrefix(), await openClient()];
  const store = await openStore({ url, prefix, ttlSeconds: 4 });
  await store.create(createHeader({ id: "a", userId: "u" }));
  await store.append("a", [message]);
  await store.saveCheckpoint(checkpointOf("c", "a"));
  await store.lease("a", "run", 1);
  await until(async () => {
    expect(await store.count({ userId: "u" })).toBe(1);
    return (await client.zcard(`${prefix}:i:{${prefix}}:unsettled`)) === 0;
  }, "a settled session");
  await until(async () => (await client.keys(`${prefix}:*{a}*`)).length === 0, "the end of the keys");
  expect([await store.head("a"), await store.loadCheckpoint("c"), await store.listCheckpoints("a")]).toEqual([
    null,
    null,
    [],
  ]);
  expect([await store.count(), await store.count({ userId: "u" }), (await store.list()).items]).toEqual([0, 0, []]);
  expect(await store.listExpired(FAR, 10)).toEqual([]);
  await store.create(createHeader({ id: "a" }));
  await store.saveCheckpoint(checkpointOf("c", "a"));
});

redisTest(
  "gives all keys of a session the same time again with every append, and none to one that was forked",
  async () => {
    const [url, prefix, client] = [await redisUrl(), newPrefix(), await openClient()];
    const store = await openStore({ url, prefix, ttlSeconds: 1000 });
    await store.create(createHeader({ id: "a" }));
    await store.append("a", [{ ...message, id: "1" }]);
    await store.saveCheckpoint(checkpointOf("c", "a"));
    await store.lease("a", "run", 60_000);
    const own = await client.keys(`${prefix}:*{a}*`);
    expect(own).toHaveLength(5);
    for (const key of own) await client.expire(key, 500);
    await store.append("a", [{ ...message, id: "2" }]);
    for (const key of own) expect(await client.ttl(key)).toBeGreaterThan(900);
    await store.fork("a", createHeader({ id: "f" }), { at: "1" });
    await store.append("a", [message]);
    await store.saveCheckpoint(checkpointOf("d", "a"));
    for (const key of await client.keys(`${prefix}:*{a}*`)) expect(await client.ttl(key)).toBe(-1);
    for (const key of await client.keys(`${prefix}:*{f}*`)) expect(await client.ttl(key)).toBeGreaterThan(900);
  },
);

redisTest("does each thing once when a client sends every command twice", async () => {
  const [prefix, client] = [newPrefix(), await openClient()];
  const twice: RedisClient = {
    async call(...command: [string, ...string[]]) {
      await client.call(...command).catch(() => {});
      return client.call(...command);
    },
    duplicate: () => client.duplicate(),
  };
  const store = await openStore({ client: twice, prefix });
  await store.create(createHeader({ id: "a", userId: "u" }), { maxOpenPerUser: 1, entries: [message] });
  for (let i = 0; i < 5; i++) await store.append("a", [message, message], { expectedVersion: 1 + 2 * i });
  expect(await refusalOf(store.append("a", [message], { expectedVersion: 0 }))).toMatchObject({ code: "CONFLICT" });
  expect(await refusalOf(store.create(createHeader({ id: "a" })))).toMatchObject({ code: "SESSION_EXISTS" });
  expect((await entriesOf(store, "a")).map(({ seq }) => seq)).toEqual(Array.from({ length: 11 }, (_, seq) => seq));
  await checkHeadIsFold(store, "a");
  await store.fork("a", createHeader({ id: "f" }), { maxForks: 1 });
  await store.saveCheckpoint(checkpointOf("c", "a"));
  expect((await store.listCheckpoints("a")).map(({ id }) => id)).toEqual(["c"]);
  expect([await store.delete("a"), await store.delete("a")]).toEqual([true, false]);
  expect([await store.undelete("a"), await store.undelete("a")]).toEqual([true, false]);
  expect((await store.list()).items.map(({ header }) => header.id).sort()).toEqual(["a", "f"]);
});

redisTest("stores more entries at once than one call takes arguments, all of them or none", async () => {
  const [url, client] = [await redisUrl(), await openClient()];
  const many = (tag: string): EntryDraft[] =>
    Array.from({ length: 10_500 }, (_, i) => ({ ...message, id: `${tag}${i}` }));
  for (const options of [{ url }, { client }]) {
    const store = await openStore({ ...options, prefix: newPrefix() });
    await store.create(createHeader({ id: "a" }), { entries: many("a") });
    const { version } = await store.append("a", many("b"), { verbatim: true });
    expect(version).toBe(21_000);
    const other = { ...message, id: "a7", message: { role: "user", content: "other" } } as const;
    const mixed = [...many("c").slice(1), other];
    expect(await refusalOf(store.append("a", mixed, { verbatim: true }))).toMatchObject({ code: "ENTRY_EXISTS" });
    expect((await store.head("a"))?.version).toBe(21_000);
    const again = await store.append("a", many("b"), { verbatim: true });
    expect([again.version, again.entries[10_499]?.seq]).toEqual([21_000, 20_999]);
    expect((await store.getEntry("a", "b9999"))?.parentId).toBe("b9998");
  }
});

redisTest("leaves a client open that the caller gave it, of either package", async () => {
  const url = await redisUrl();
  const official = createClient({ url });
  official.on("error", () => {});
  await official.connect();
  onTestFinished(() => official.destroy());
  const other = new Redis(url);
  onTestFinished(() => other.disconnect());
  for (const client of [official, other]) {
    const store = await openStore({ client, prefix: newPrefix() });
    await store.create(createHeader({ id: "a" }));
    const watched = store.watch("a", { after: -1 })[Symbol.asyncIterator]();
    const first = watched.next();
    await store.append("a", [{ ...message, id: "1" }]);
    expect((await first).value?.id).toBe("1");
    await watched.return?.();
    await store.close();
    expect(await (client as { ping(): Promise<unknown> }).ping()).toBe("PONG");
  }
});

redisTest("takes text from a client that was told to give buffers", async () => {
  const client = createClient({ url: await redisUrl(), commandOptions: { typeMapping: { 36: Buffer } } });
  client.on("error", () => {});
  await client.connect();
  onTestFinished(() => client.destroy());
  const store = await openStore({ client, prefix: newPrefix() });
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [message]);
  await checkHeadIsFold(store, "a");
});

function checkpointOf(id: string, sessionId: string): Checkpoint {
  const createdAt = "2024-01-01T00:00:00.000Z";
  return { id, sessionId, version: 0, leafId: null, createdAt, parentCheckpointId: null, metadata: {} };
}

/** The part of a key that determines its slot: the text between its first brace and the next closing one. */
function tagOf(key: string): string {
  return /\{([^}]+)\}/.exec(key)?.[1] ?? key;
}
