import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import type { ServerLimits } from "../../src/http/index.ts";
import type { JsonObject } from "../../src/internal/json.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { UserStorage } from "../../src/workers/user-storage.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { callOf, calling, toolOf } from "../sample-run.ts";
import { answering } from "./runs-agents.ts";
import { nextOf, openRunServer, type RunServer } from "./runs-server.ts";

const KIB = 1024;
const SESSIONS = "SESSIONS_QUOTA_EXCEEDED";
const BYTES = "BYTES_QUOTA_EXCEEDED";
const SOON = { timeout: 60_000, interval: 200 };

const open = (limits: ServerLimits, store?: SessionStore): Promise<RunServer> =>
  openRunServer({
    agents: { helper: answering(["Yes.", "Yes."]) },
    ...(store && { store }),
    init: { limits: { rate: null, ...limits } },
  });

/** Repeats a request until it is refused; the code of the error and the number of successes. */
async function untilRefused(act: (index: number) => Promise<unknown>): Promise<{ code: string; done: number }> {
  for (let done = 0; done < 100; done++) {
    try {
      await act(done);
    } catch (error) {
      return { code: (error as { code: string }).code, done };
    }
  }
  return { code: "none", done: 100 };
}

const LINES = (id: string, text: string): string =>
  [
    { type: "session", version: 3, id, timestamp: "2026-01-01T00:00:00.000Z", cwd: "/" },
    {
      type: "message",
      id: "m",
      parentId: null,
      timestamp: "2026-01-01T00:00:00.000Z",
      message: { role: "user", content: text },
    },
  ]
    .map((line: JsonObject) => JSON.stringify(line))
    .join("\n");

describe("the stored sessions of a user", () => {
  test("count when they are closed and when they are deleted, and no more when they are purged", async () => {
    const { client, as, store } = await open({ storedSessionsPerUser: 5 });
    const made: string[] = [];
    // One was created before.
    const closed = await untilRefused(async () => {
      const { header } = await client.sessions.create({});
      made.push(header.id);
      await client.sessions.close(header.id, {});
    });
    expect(closed).toEqual({ code: SESSIONS, done: 4 });
    for (const id of made) await client.sessions.delete(id);
    await expect(client.sessions.create({})).rejects.toMatchObject({ code: SESSIONS, status: 409 });
    await expect(client.sessions.create({})).rejects.toThrow(/delete some, and have the trash purged/);
    await as("bob").sessions.create({});
    await store.purge({ sessionId: made[0] ?? "" });
    await vi.waitFor(() => client.sessions.create({}), SOON);
  });

  test("never exceed the limit, by concurrent requests, forks and imports", async () => {
    const { client, sessionId, store } = await open({ storedSessionsPerUser: 6 });
    const forks = Array.from({ length: 20 }, (_, i) => client.sessions.fork(sessionId, { branchName: `b${i}` }));
    await Promise.allSettled(forks);
    const imports = Array.from({ length: 20 }, (_, i) => client.sessions.importFile(LINES(`s${i}`, "Hi.")));
    const results = await Promise.allSettled(imports);
    expect(results.every(({ status }) => status === "rejected")).toBe(true);
    expect(await store.count({ userId: "ann" })).toBe(6);
  });
});

describe("the stored bytes of a user", () => {
  const turn = (bytes: number) => ({ role: "user", content: "x".repeat(bytes) }) as const;

  test("are limited for turns, imports and variables; closing and deleting still work, and other users are not affected", async () => {
    const { client, as, sessionId, store } = await open({ storedBytesPerUser: 300 * KIB });
    const appended = await untilRefused(() => client.sessions.addTurn(sessionId, turn(40 * KIB)));
    expect(appended.code).toBe(BYTES);
    expect(appended.done).toBeGreaterThan(4);
    await expect(client.sessions.importFile(LINES("a", "x".repeat(40 * KIB)))).rejects.toMatchObject({ code: BYTES });
    await expect(client.runs.start(sessionId, { input: "x".repeat(40 * KIB) })).rejects.toMatchObject({ code: BYTES });
    const { header } = await as("bob").sessions.create({});
    await as("bob").sessions.addTurn(header.id, turn(40 * KIB));
    await client.sessions.close(sessionId, {});
    await client.sessions.delete(sessionId);
    await store.purge({ sessionId });
    await vi.waitFor(() => client.sessions.importFile(LINES("b", "x".repeat(40 * KIB))), SOON);
  });

  test("are counted again after a restart", async () => {
    const first = await open({});
    const { store, sessionId } = first;
    for (let i = 0; i < 5; i++) await first.client.sessions.addTurn(sessionId, turn(40 * KIB));
    await first.server.close();
    const second = await open({ storedBytesPerUser: 150 * KIB }, store);
    const name = { name: "x" };
    await vi.waitFor(
      () => expect(second.client.sessions.update(sessionId, name)).rejects.toMatchObject({ code: BYTES }),
      SOON,
    );
  });

  test("prevent a run from starting, and stop one between its rounds, with an error message", async () => {
    const grow = toolOf("grow", () => pause(50, "y".repeat(45 * KIB)));
    const rounds = Array.from({ length: 40 }, (_, i) => calling(callOf(String(i), "grow")));
    const { client, sessionId, store } = await openRunServer({
      agents: { helper: answering(rounds, [grow]) },
      init: { recoverMs: 500, limits: { rate: null, storedBytesPerUser: 200 * KIB } },
    });
    const run = await client.runs.start(sessionId, { input: "Grow." });
    await expect.poll(async () => (await client.runs.get(sessionId, run.runId)).status).toBe("cancelled");
    // Requested by a program that does not count.
    await store.append(sessionId, [
      { type: "run_request", id: "run:late", runId: "late", input: "Go.", agent: "helper" },
    ]);
    await client.runs.recover(sessionId).catch(() => null);
    await nextOf(client, { sessionId, runId: "late" }, "run-failed");
    for await (const entry of store.read(sessionId, { reverse: true, limit: 1 })) {
      expect(entry).toMatchObject({ type: "run", phase: "failed", error: { code: BYTES } });
    }
  });
});

describe("the bytes of forks and merges", () => {
  const draft = { type: "message", message: { role: "user", content: "x".repeat(60 * KIB) } } as const;

  test("count with the longest fork after its source is purged, because the store keeps them for that fork", async () => {
    await using store = openMemoryStore();
    await using manager = new SessionManager({ store });
    const limits = { sessions: null, bytes: 300 * KIB };
    const counted = (): Promise<void> =>
      new UserStorage({ store, limits, directoryOf: () => null }).checkRun("ann", "none");
    const refused = await untilRefused(async () => {
      const { sessionId } = await manager.create({ userId: "ann" });
      await store.append(sessionId, [draft]);
      await manager.fork(sessionId, "kept");
      await manager.fork(sessionId, "kept, too");
      await manager.delete(sessionId);
      await store.purge("9999-12-31T23:59:59.999Z");
      await counted();
    });
    expect(refused).toEqual({ code: BYTES, done: 4 });
    for (const { header } of (await store.list({ userId: "ann" })).items) await store.delete(header.id);
    await store.purge("9999-12-31T23:59:59.999Z");
    await counted();
  });

  test("count immediately in a store where a fork is a copy", async () => {
    const directory = mkdtempSync(join(tmpdir(), "storage-"));
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
    await using store = await openStore(`jsonl:${directory}`);
    const { client } = await open({ storedBytesPerUser: 300 * KIB }, store);
    const { id } = (await client.sessions.create({})).header;
    await client.sessions.append(id, { entries: [draft] });
    const forked = await untilRefused((index) => client.sessions.fork(id, { branchName: `b${index}` }));
    expect(forked).toEqual({ code: BYTES, done: 4 });
  });

  test("count immediately for a merge", async () => {
    const { client, sessionId } = await open({ storedBytesPerUser: 300 * KIB });
    const { id } = (await client.sessions.fork(sessionId, { branchName: "side" })).header;
    await client.sessions.append(id, { entries: [draft, draft] });
    await client.sessions.merge(sessionId, { branchId: id });
    await expect(client.sessions.append(id, { entries: [draft] })).rejects.toMatchObject({ code: BYTES });
  });
});

describe("the bytes counted for a user", () => {
  let directory = "";
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  test("are the log in every store, deleted or not, later appends, and the user's directory", async () => {
    directory = mkdtempSync(join(tmpdir(), "storage-"));
    const own = join(directory, "own");
    for (const store of [openMemoryStore(), await openSqliteStore({ path: join(directory, "a.db") })]) {
      await using opened = store;
      const limits = { sessions: null, bytes: 100 * KIB };
      const storage = new UserStorage({ store: opened, limits, directoryOf: () => own });
      const draft = { type: "message", message: { role: "user", content: "x".repeat(60 * KIB) } } as const;
      await opened.create(createHeader({ id: "one", userId: "ann" }), { entries: [draft] });
      await storage.checkRun("ann", "one");
      await opened.create(createHeader({ id: "two", userId: "ann" }), { entries: [draft] });
      await opened.delete("two");
      const again = new UserStorage({ store: opened, limits, directoryOf: () => own });
      await expect(again.checkRun("ann", "one")).rejects.toMatchObject({ code: BYTES });
      await expect(again.checkRun("bob", "one")).resolves.toBeUndefined();
      await mkdir(join(own, "deep"), { recursive: true });
      await writeFile(join(own, "deep", "file"), "x".repeat(101 * KIB));
      const files = new UserStorage({
        store: opened,
        limits,
        directoryOf: (userId) => (userId === "bob" ? own : null),
      });
      await expect(files.checkRun("bob", "one")).rejects.toMatchObject({ code: BYTES });
      rmSync(own, { recursive: true });
    }
  });
});
