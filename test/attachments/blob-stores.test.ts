import { spawnSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import Database from "libsql";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { BlobStore } from "../../src/session/blob.ts";
import { createHeader, type SessionStore } from "../../src/index.ts";
import { fileBlobs, s3Blobs } from "../../src/stores/blobs/index.ts";
import { thisProcess } from "../../src/internal/process-identity.ts";
import { createStore } from "../../src/stores/complete/create-store.ts";
import { MemoryDriver } from "../../src/stores/memory/memory-driver.ts";
import { KeyNames } from "../../src/stores/redis/key-names.ts";
import { CHUNK_BYTES, uploadName } from "../../src/stores/sql/blob-rows.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { MemoryBlobs } from "../../src/stores/memory/memory-blobs.ts";
import { openPostgresStore } from "../../src/stores/postgres/index.ts";
import { openRedisStore } from "../../src/stores/redis/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { blobStoreCases } from "../../src/testing/blob-store-cases.ts";
import { blobCases, holds, pictured, sampleBytes } from "../../src/testing/store/blob-cases.ts";
import { postgresUrl } from "../postgres-server.ts";
import { ioRedisClient, redisPrefix, redisSkip, redisUrl } from "../redis-server.ts";
import { s3Server } from "../s3-server.ts";
import { skipBecause } from "../skip.ts";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-blobs-"));
});

afterEach(() => rm(directory, { recursive: true, force: true }));

/** Where blobs can be, besides the store itself. */
const blobStores: Readonly<Record<string, () => Promise<BlobStore> | BlobStore>> = {
  memory: () => new MemoryBlobs(() => new Date()),
  files: () => fileBlobs(join(directory, "blobs")),
  "synced files": () => fileBlobs(join(directory, "blobs"), { durability: "fsync" }),
  S3: () => openS3(),
};

/** A part of the bucket that no other test uses. */
async function openS3(): Promise<BlobStore> {
  return s3Blobs({ ...(await s3Server()).options, prefix: `${randomUUID()}/` });
}

describe.each(Object.entries(blobStores))("blobs in %s", (_, open) => {
  for (const { name, run } of blobStoreCases) test(name, async () => run(await open()));
});

const stores: Readonly<Record<string, (blobs: BlobStore) => Promise<SessionStore>>> = {
  memory: async (blobs) => openMemoryStore({ blobs }),
  jsonl: (blobs) => openJsonlStore({ directory: join(directory, "store"), blobs }),
  sqlite: (blobs) => openSqliteStore({ path: join(directory, "skein.db"), driver: "libsql", blobs }),
  postgres: async (blobs) =>
    openPostgresStore({ url: await postgresUrl(), schema: "blobs_in_files", connectionsMax: 3, blobs }),
  redis: async (blobs) => openRedisStore({ url: await redisUrl(), prefix: `${redisPrefix}:files`, blobs }),
};

/** The published cases of stores, with blobs in another place. Those with blobs in the store itself run with all other cases. */
const places = Object.keys(stores).flatMap((store) => ["files", "S3"].map((place) => ({ store, place })));

test.each(places)("$store keeps all promises with its blobs in $place", async ({ store: name, place }) => {
  if (name === "redis" && redisSkip !== null) return;
  const open = stores[name] as (blobs: BlobStore) => Promise<SessionStore>;
  let ran = 0;
  for (const each of blobCases) {
    const folder = join(directory, randomUUID());
    const prefix = `${randomUUID()}/`;
    const blobs = async (): Promise<BlobStore> =>
      place === "files" ? fileBlobs(folder) : s3Blobs({ ...(await s3Server()).options, prefix });
    const opened: SessionStore[] = [];
    const openOne = async (): Promise<SessionStore> => {
      const store = await open(await blobs());
      opened.push(store);
      return store;
    };
    const store = await openOne();
    try {
      await each.run(store.capabilities.shared ? { store, reopen: openOne } : { store });
      ran += 1;
    } catch (error) {
      throw new Error(each.name, { cause: error });
    }
    for (const { header } of (await store.list({ limit: 100 })).items) await store.delete(header.id);
    await store.purge({ before: "9999-12-31T23:59:59.999Z" });
    for (const each of opened) await each.close();
  }
  expect(ran).toBe(blobCases.length);
});

test("an append that waits for other writers until an erasure could have looked at the logs renews its blobs again", async () => {
  const blobs = new MemoryBlobs(() => new Date());
  let renewals = 0;
  const renew = blobs.renew.bind(blobs);
  blobs.renew = (key) => {
    renewals += 1;
    return renew(key);
  };
  const driver = new MemoryDriver(() => new Date());
  const append = driver.append.bind(driver);
  let waits = 1;
  driver.append = async (...args) => {
    if (waits-- > 0) await wait(600);
    return append(...args);
  };
  await using store = createStore(driver, { blobs });
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [pictured(sampleBytes(1))]);
  const before = renewals;
  waits = 1;
  await store.append("a", [pictured(sampleBytes(1))]);
  // Once before the append that waited, and once before the next.
  expect(renewals - before).toBe(2);
  expect((await store.head("a"))?.version).toBe(2);
});

/** The name of the chunks of an upload by a process that has ended. */
function endedUpload(): string {
  const { pid } = spawnSync(process.execPath, ["-e", ""]);
  const identity = { pid, startedAt: null, space: thisProcess.space };
  return `1.${Buffer.from(JSON.stringify(identity)).toString("base64url")}`;
}

test("the next sweep removes what a killed process has stored of a blob in a database, and nothing of living ones", async () => {
  const path = join(directory, "skein.db");
  await using store = await openSqliteStore({ path, driver: "libsql" });
  await store.create(createHeader({ id: "a" }));
  const database = new Database(path);
  const insert = database.prepare("INSERT INTO blob_chunks (chunks, number, written_ms, data) VALUES (?, 0, ?, x'00')");
  const living = uploadName();
  for (const name of [living, endedUpload()]) insert.run(name, Date.now());
  await store.sweepBlobs({ graceMs: 0 });
  expect(database.prepare("SELECT chunks FROM blob_chunks").all()).toEqual([{ chunks: living }]);
  database.close();
});

test("the next sweep removes what a killed process has stored of a blob in Redis, and nothing of living ones", async (context) => {
  if (redisSkip !== null) return skipBecause(context, redisSkip);
  const prefix = `${redisPrefix}:left`;
  await using store = await openRedisStore({ url: await redisUrl(), prefix });
  const client = await ioRedisClient();
  const names = new KeyNames(prefix);
  const [living, ended] = [uploadName(), endedUpload()];
  for (const name of [living, ended]) {
    await client.sadd(names.index("uploads"), JSON.stringify(["a", name]));
    await client.hset(names.blobChunks("a", name), "0", "AA==");
  }
  await store.sweepBlobs({ graceMs: 0 });
  expect(await client.exists(names.blobChunks("a", living))).toBe(1);
  expect(await client.exists(names.blobChunks("a", ended))).toBe(0);
  expect(await client.smembers(names.index("uploads"))).toEqual([JSON.stringify(["a", living])]);
});

test("blobs in Redis are read whole and in ranges, in chunks of today and of 1 MiB as before", async (context) => {
  if (redisSkip !== null) return skipBecause(context, redisSkip);
  const prefix = `${redisPrefix}:chunks`;
  await using store = await openRedisStore({ url: await redisUrl(), prefix });
  await store.create(createHeader({ id: "a" }));
  const bytes = sampleBytes(5, 2_500_000);
  const { blob } = await store.putBlob("a", bytes);
  await holdsRanges(store, blob, bytes);
  const client = await ioRedisClient();
  const names = new KeyNames(prefix);
  const [[hash, field] = ["", ""]] = Object.entries(await client.hgetall(names.blobs("a")));
  const [size, renewedAt, chunks = ""] = field.split(":");
  const before = uploadName();
  for (let at = 0, number = 0; at < bytes.length; at += CHUNK_BYTES, number++) {
    const chunk = bytes.subarray(at, at + CHUNK_BYTES).toString("base64");
    await client.hset(names.blobChunks("a", before), String(number), chunk);
  }
  await client.del(names.blobChunks("a", chunks));
  await client.hset(names.blobs("a"), hash, `${size}:${renewedAt}:${before}`);
  await holdsRanges(store, blob, bytes);
});

async function holdsRanges(store: SessionStore, name: string, bytes: Buffer): Promise<void> {
  await holds(store, "a", bytes);
  for (const [start, end] of [
    [0, 1],
    [49_151, 49_153],
    [CHUNK_BYTES - 1, CHUNK_BYTES + 100_000],
    [bytes.length - 10, bytes.length],
  ] as const) {
    const read = await (await store.blob("a", name))?.bytes({ start, end });
    expect(Buffer.from(read ?? []).equals(bytes.subarray(start, end))).toBe(true);
  }
}

test("blob files can be read by their owner only", async (context) => {
  if (process.platform === "win32") return skipBecause(context, "the system has no modes");
  const blobs = fileBlobs(join(directory, "blobs"));
  await using store = openMemoryStore({ blobs });
  await store.create(createHeader({ id: "a" }));
  await store.append("a", [pictured(sampleBytes(1))]);
  await holds(store, "a", sampleBytes(1));
  for (const item of await readdir(join(directory, "blobs"), { recursive: true, withFileTypes: true })) {
    const { mode } = await stat(join(item.parentPath, item.name));
    expect((mode & 0o777).toString(8)).toBe(item.isFile() ? "600" : "700");
  }
});

test("refuses what exceeds a limit, and stores nothing", async () => {
  await using store = openMemoryStore({ blobBytesMax: 20_000, userBlobBytesMax: 30_000 });
  await store.create(createHeader({ id: "a", userId: "ada" }));
  await store.create(createHeader({ id: "b", userId: "ada" }));
  const appending = store.append("a", [pictured(sampleBytes(1, 20_001))]);
  await expect(appending).rejects.toMatchObject({ code: "TOO_LARGE" });
  await expect(store.putBlob("a", sampleBytes(1, 20_001))).rejects.toMatchObject({ code: "TOO_LARGE" });
  await store.append("a", [pictured(sampleBytes(2, 20_000))]);
  // The same bytes again take no more room in this session.
  await store.append("a", [pictured(sampleBytes(2, 20_000))]);
  const other = store.append("b", [pictured(sampleBytes(3, 10_001))]);
  await expect(other).rejects.toMatchObject({ code: "BLOBS_QUOTA_EXCEEDED" });
  expect((await store.head("b"))?.version).toBe(0);
  expect(await store.sweepBlobs()).toMatchObject({ blobs: 1 });
  await store.append("b", [pictured(sampleBytes(3, 10_000))]);
});

test("what no entry refers to, and a deleted session, count towards the limit of a user", async () => {
  await using store = openMemoryStore({ userBlobBytesMax: 30_000 });
  for (const id of ["a", "b"]) await store.create(createHeader({ id, userId: "ada" }));
  const refused = expect.objectContaining({ code: "BLOBS_QUOTA_EXCEEDED" });
  await store.putBlob("a", sampleBytes(1, 20_000));
  await expect(store.putBlob("b", sampleBytes(2, 20_000))).rejects.toEqual(refused);
  await store.delete("a");
  await expect(store.putBlob("b", sampleBytes(2, 20_000))).rejects.toEqual(refused);
  await store.purge({ sessionId: "a" });
  await store.putBlob("b", sampleBytes(2, 20_000));
});
