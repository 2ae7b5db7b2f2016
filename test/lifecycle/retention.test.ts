import { stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { SessionStatus } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { applyRetention } from "../../src/lifecycle/index.ts";
import { digestOf } from "../../src/stores/doctor/log-digest.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { makeDirectory, openIn, say } from "../moving/sample-store.ts";
import { backends } from "../store-backends.ts";

const AGO = "2020-01-01T00:00:00.000Z";
const soon = (): Date => new Date(Date.now() + 60_000);
const earlier = (): Date => new Date(Date.now() - 60_000);

async function add(store: SessionStore, id: string, status: SessionStatus, userId = "ann"): Promise<void> {
  await store.create(createHeader({ id, userId, createdAt: AGO }), { entries: [{ ...say(`${id}1`), timestamp: AGO }] });
  if (status !== "active") await store.append(id, [{ type: "status", status }]);
}

async function idsIn(store: SessionStore, deleted = false): Promise<string[]> {
  return (await store.list({ deleted })).items.map(({ header }) => header.id).sort();
}

describe.each(backends)("retention on the $name store", (backend) => {
  test("deletes by age and status, in batches, up to its limit", async () => {
    const store = await openIn(backend);
    for (let i = 0; i < 7; i++) await add(store, `closed${i}`, "closed");
    await add(store, "open", "active");
    await add(store, "bobs", "closed", "bob");
    const rule = { status: ["closed", "expired"], userId: "ann", olderThan: soon() } as const;

    const would = await applyRetention(store, { deleteAfter: rule, dryRun: true });
    expect([...would.deleted].sort()).toEqual([0, 1, 2, 3, 4, 5, 6].map((i) => `closed${i}`));
    expect(await store.count()).toBe(9);

    const seen: number[] = [];
    const onProgress = ({ looked }: { looked: number }) => void seen.push(looked);
    const some = await applyRetention(store, { deleteAfter: rule, batchSize: 2, limit: 5, onProgress });
    expect(some.deleted).toHaveLength(5);
    expect(seen).toEqual([2, 4]);
    await applyRetention(store, { deleteAfter: rule, batchSize: 2 });
    expect(await idsIn(store)).toEqual(["bobs", "open"]);
    expect(await store.count({ deleted: true })).toBe(7);
  });

  test("keeps sessions that were used since, and those with a lease", async () => {
    const store = await openIn(backend);
    await add(store, "young", "active");
    await add(store, "busy", "active");
    // Nothing is that old: the appends are recent, even if the times of the messages are not.
    expect((await applyRetention(store, { deleteAfter: { olderThan: earlier() } })).deleted).toEqual([]);
    await using _lease = await store.lease("busy", "run", 60_000);
    expect((await applyRetention(store, { deleteAfter: { olderThan: soon() } })).deleted).toEqual(["young"]);
    expect(await idsIn(store)).toEqual(["busy"]);
  });

  test("archives and verifies each session before it is deleted; one that cannot be archived is kept", async () => {
    const store = await openIn(backend);
    for (const id of ["a", "b", "taken"]) await add(store, id, "closed");
    await store.fork("a", createHeader({ id: "fork", createdAt: AGO }));
    const digests = await Promise.all(["a", "b", "fork"].map((id) => digestOf(store, id)));
    await using archive = openMemoryStore();
    await archive.create(createHeader({ id: "taken" }));
    const report = await applyRetention(store, { deleteAfter: { olderThan: soon() }, archive });
    expect([...report.deleted].sort()).toEqual(["a", "b", "fork"]);
    expect(report.archived).toBe(3);
    expect(report.failures.map(({ sessionId, error }) => [sessionId, error.code])).toEqual([
      ["taken", "SESSION_EXISTS"],
    ]);
    expect(await Promise.all(["a", "b", "fork"].map((id) => digestOf(archive, id)))).toEqual(digests);
    expect(await idsIn(store)).toEqual(["taken"]);
  });

  test("purges sessions that were deleted long enough ago, and a fork keeps its inherited entries", async () => {
    const store = await openIn(backend);
    await add(store, "source", "closed");
    await store.append("source", [say("two"), say("three")]);
    await store.fork("source", createHeader({ id: "fork", createdAt: AGO }), { at: "two" });
    await store.append("fork", [say("own")]);
    await store.fork("fork", createHeader({ id: "deep" }));
    const digests = await Promise.all(["fork", "deep"].map((id) => digestOf(store, id)));
    await applyRetention(store, { deleteAfter: { status: "closed", olderThan: soon() } });
    await store.undelete("fork");
    await store.undelete("deep");
    expect((await applyRetention(store, { purgeAfter: { olderThan: earlier() } })).purged).toBe(0);
    expect(await store.undelete("source")).toBe(true);
    await store.delete("source");
    expect(await applyRetention(store, { purgeAfter: { olderThan: soon() }, dryRun: true })).toMatchObject({
      purged: 0,
    });
    expect((await applyRetention(store, { purgeAfter: { olderThan: soon() } })).purged).toBe(1);
    expect(await store.undelete("source")).toBe(false);
    expect(await Promise.all(["fork", "deep"].map((id) => digestOf(store, id)))).toEqual(digests);
  });
});

test("returns the space of purged sessions to the file system with vacuum", async () => {
  const path = join(await makeDirectory(), "skein.db");
  const filled = await openSqliteStore({ path });
  for (let i = 0; i < 20; i++) {
    await filled.create(createHeader({ id: `s${i}` }), { entries: [say("a", "x".repeat(200_000))] });
  }
  await filled.close();
  expect((await stat(path)).size).toBeGreaterThan(4_000_000);
  await using store = await openSqliteStore({ path });
  await store.create(createHeader({ id: "kept" }), { entries: [say("k", "needle")] });
  await store.search("needle");
  await applyRetention(store, { deleteAfter: { olderThan: soon() } });
  await store.undelete("kept");
  const kept = await digestOf(store, "kept");
  const options = { purgeAfter: { olderThan: soon() }, vacuum: true };
  expect(await applyRetention(store, options)).toMatchObject({ purged: 20, vacuumed: true });
  expect((await stat(path)).size).toBeLessThan(500_000);
  expect(await digestOf(store, "kept")).toEqual(kept);
  expect((await store.search("needle")).map(({ head }) => head.header.id)).toEqual(["kept"]);
  await store.append("kept", [say("more")]);
  expect(await applyRetention(store, options)).toMatchObject({ purged: 0, vacuumed: false });
});

test("refuses invalid options, and stops when it is aborted", async () => {
  await using store = openMemoryStore();
  await add(store, "a", "closed");
  const rule = { olderThan: soon() };
  for (const options of [
    {},
    { deleteAfter: { olderThan: "yesterday" as unknown as Date } },
    { deleteAfter: rule, batchSize: 0 },
    { deleteAfter: rule, limit: 0 },
    { deleteAfter: rule, archive: store },
    { purgeAfter: { olderThan: new Date(Number.NaN) } },
  ]) {
    await expect(applyRetention(store, options)).rejects.toMatchObject({ code: "INVALID_OPTION" });
  }
  const signal = AbortSignal.abort(new Error("enough"));
  await expect(applyRetention(store, { deleteAfter: rule, signal })).rejects.toThrow("enough");
  expect(await store.count()).toBe(1);
});
