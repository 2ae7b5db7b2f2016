import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { BlobStore } from "../../src/session/blob.ts";
import { createHeader, type SessionStore } from "../../src/index.ts";
import { fileBlobs } from "../../src/stores/blobs/index.ts";
import { openJsonlStore } from "../../src/stores/jsonl/index.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { MemoryBlobs } from "../../src/stores/memory/memory-blobs.ts";
import { openPostgresStore } from "../../src/stores/postgres/index.ts";
import { openRedisStore } from "../../src/stores/redis/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { blobStoreCases } from "../../src/testing/blob-store-cases.ts";
import { blobCases, holds, pictured, sampleBytes } from "../../src/testing/store/blob-cases.ts";
import { postgresUrl } from "../postgres-server.ts";
import { redisPrefix, redisSkip, redisUrl } from "../redis-server.ts";
import { skipBecause } from "../skip.ts";

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-blobs-"));
});

afterEach(() => rm(directory, { recursive: true, force: true }));

const blobStores: Readonly<Record<string, () => BlobStore>> = {
  memory: () => new MemoryBlobs(() => new Date()),
  files: () => fileBlobs(join(directory, "blobs")),
  "synced files": () => fileBlobs(join(directory, "blobs"), { durability: "fsync" }),
};

describe.each(Object.entries(blobStores))("blobs in %s", (_, open) => {
  for (const { name, run } of blobStoreCases) test(name, () => run(open()));
});

const stores: Readonly<Record<string, (blobs: BlobStore) => Promise<SessionStore>>> = {
  memory: async (blobs) => openMemoryStore({ blobs }),
  jsonl: (blobs) => openJsonlStore({ directory: join(directory, "store"), blobs }),
  sqlite: (blobs) => openSqliteStore({ path: join(directory, "skein.db"), driver: "libsql", blobs }),
  postgres: async (blobs) =>
    openPostgresStore({ url: await postgresUrl(), schema: "blobs_in_files", connectionsMax: 3, blobs }),
  redis: async (blobs) => openRedisStore({ url: await redisUrl(), prefix: `${redisPrefix}:files`, blobs }),
};

test.each(Object.entries(stores))("the %s store keeps all promises with its blobs in files", async (name, open) => {
  if (name === "redis" && redisSkip !== null) return;
  const left = /sweep|second handle|takes the data out|stream/;
  for (const { name: each, run } of blobCases.filter((one) => !left.test(one.name))) {
    await using store = await open(fileBlobs(join(directory, "blobs")));
    try {
      await run({ store });
    } catch (error) {
      throw new Error(each, { cause: error });
    }
    for (const deleted of [false, true])
      for (const { header } of (await store.list({ deleted })).items) if (!deleted) await store.delete(header.id);
    await store.purge({ before: "9999-12-31T23:59:59.999Z" });
    await rm(join(directory, "blobs"), { recursive: true, force: true });
  }
});

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
