import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { expect, onTestFinished } from "vitest";
import { type RedisServer, redisMissing, startRedis } from "../../scripts/redis.mjs";
import { createSmallDisk, type SmallDisk } from "../../scripts/small-disk.mjs";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { appendAgain, appendUntilRefused, checkHolds, diskTest, largeDrafts } from "./disk-support.ts";
import { quiet } from "../redis-server.ts";
import { DURABLE, openClient, openStore, ownServerTest, startServer } from "./redis-support.ts";
import { entriesOf, message, refusalOf, until } from "./store-support.ts";

const DISK_BYTES = 8_000_000;
const NOT_SAVED =
  /^The Redis server redis:\/\/127\.0\.0\.1:\d+ accepts no writes because it cannot save to its disk; make room there, let it write to its directory, and try again\.$/;

diskTest(
  "refuses writes when the disk is full, still reads and lists, and goes on when there is room",
  async () => {
    const { server, disk } = await startOnDisk(["--appendonly", "yes", "--appendfsync", "everysec"]);
    const [store, client] = [await openStore({ url: server.url }), await openClient(server.url)];
    await store.create(createHeader({ id: "a" }));
    disk.fill(500_000);
    const { acknowledged, refused, refusal } = await appendUntilRefused(store);
    expect(refusal).toMatchObject({ code: "STORE_FAILED", message: expect.stringMatching(NOT_SAVED) });
    expect(acknowledged.length).toBeGreaterThan(10);
    await checkWritesRefused(store);
    await checkHolds(store, acknowledged);
    disk.makeRoom();
    await appendAgain(store, refused);
    const all = [...acknowledged, ...refused.map(({ id }) => id as string)];
    await checkHolds(store, all);
    await restart(client);
    await checkHolds(await openStore({ url: server.url }), all);
  },
  redisMissing(),
);

diskTest(
  "acknowledges nothing that is not on disk when a server that always syncs ends, as its disk is full",
  async () => {
    const { server, disk } = await startOnDisk(DURABLE);
    const store = await openStore({ url: server.url });
    await store.create(createHeader({ id: "a" }));
    disk.fill(500_000);
    const { acknowledged, refused, refusal } = await appendUntilRefused(store);
    expect(refusal).toMatchObject({
      code: "STORE_FAILED",
      message: expect.stringMatching(/ (?:cannot be reached now; |lost the connection during a call, )[^.]+\.$/),
    });
    expect(acknowledged.length).toBeGreaterThan(10);
    // No write is allowed here, because the server would exit again.
    await until(async () => (await refusalOf(store.ping())).code === "done", "the server");
    expect((await entriesOf(store, "a")).map(({ id }) => id)).toEqual(acknowledged);
    disk.makeRoom();
    await appendAgain(store, refused);
    await checkHolds(store, [...acknowledged, ...refused.map(({ id }) => id as string)]);
  },
  redisMissing(),
);

ownServerTest("refuses writes when a snapshot failed, and lists what was written until then all the same", async () => {
  const server = await startServer(["--save", "3600 1"]);
  const [store, client] = [await openStore({ url: server.url }), await openClient(server.url)];
  for (const id of ["a", "b", "c", "d"]) await store.create(createHeader({ id, userId: id === "d" ? "me" : "you" }));
  await store.list();
  // None of these is indexed when the server stops accepting writes.
  await store.append("b", [message]);
  await store.append("d", [{ type: "status", status: "closed" }]);
  await store.delete("c");
  await store.create(createHeader({ id: "e", userId: "me" }));
  const [, directory = ""] = (await client.config("GET", "dir")) as string[];
  const inTheWay = join(directory, "dump.rdb");
  // A server that cannot save does not exit, either.
  onTestFinished(() => rm(inTheWay, { recursive: true, force: true }));
  await mkdir(inTheWay);
  await client.bgsave();
  await until(async () => (await saved(client)) === "err", "a failed snapshot");
  await checkWritesRefused(store);
  const shown = await viewsOf(store);
  expect([...shown.listed].sort()).toEqual(["a", "b", "d", "e"]);
  await rm(inTheWay, { recursive: true });
  await client.bgsave();
  await until(async () => (await saved(client)) === "ok", "a snapshot");
  expect(await viewsOf(store)).toEqual(shown);
  await store.append("a", largeDrafts("after"));
  expect((await store.head("a"))?.version).toBe(2);
});

async function checkWritesRefused(store: SessionStore): Promise<void> {
  for (const write of [
    () => store.append("a", [message]),
    () => store.create(createHeader({ id: "new" })),
    () => store.create(createHeader({ id: "new", userId: "me" }), { maxOpenPerUser: 10 }),
    () => store.fork("a", createHeader({ id: "new" })),
    () => store.delete("a"),
    () => store.lease("a", "run", 1000),
  ]) {
    expect(await refusalOf(write())).toMatchObject({
      code: "STORE_FAILED",
      message: expect.stringMatching(NOT_SAVED),
    });
  }
  expect(await store.head("new")).toBeNull();
}

/** The results of all ways to find sessions. */
async function viewsOf(store: SessionStore): Promise<{ readonly listed: readonly string[]; readonly others: unknown }> {
  const listed: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await store.list({ limit: 1, ...(cursor === undefined ? {} : { cursor }) });
    listed.push(...page.items.map(({ header }) => header.id));
    cursor = page.next ?? undefined;
  } while (cursor !== undefined);
  const others = [
    (await store.list({ deleted: true })).items,
    (await store.list({ userId: "me" })).items,
    await store.listExpired("2999-01-01T00:00:00.000Z", 2),
    await Promise.all(
      [{}, { userId: "me" }, { deleted: true }, { status: "closed" as const }].map((query) => store.count(query)),
    ),
  ];
  return { listed, others };
}

async function saved(client: Redis): Promise<string | undefined> {
  const text = await client.info("persistence");
  return /rdb_bgsave_in_progress:0/.test(text) ? /rdb_last_bgsave_status:(\w+)/.exec(text)?.[1] : undefined;
}

/** Stops the server; the owner of the small disk starts it again. */
async function restart(client: Redis): Promise<void> {
  const process = async (): Promise<string | undefined> => /run_id:(\w+)/.exec(await client.info("server"))?.[1];
  const before = await process();
  // An ordinary client would repeat the command on the next server.
  const once = quiet(client.duplicate({ retryStrategy: () => null }));
  await refusalOf(once.shutdown("NOSAVE"));
  await until(async () => ![before, undefined].includes(await process().catch(() => undefined)), "another server");
}

async function startOnDisk(flags: readonly string[]): Promise<{
  readonly server: RedisServer;
  readonly disk: SmallDisk;
}> {
  const disk = createSmallDisk(DISK_BYTES);
  const server = await startRedis(flags, disk);
  onTestFinished(() => server.stop());
  return { server, disk };
}
