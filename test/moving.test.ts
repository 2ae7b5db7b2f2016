import { describe, expect, test } from "vitest";
import type { Entry } from "../src/session/log/entry.ts";
import { createHeader, type SessionHeader } from "../src/session/log/header.ts";
import type { SessionStore } from "../src/session/store.ts";
import { checkStore } from "../src/stores/doctor/check-store.ts";
import { copySession } from "../src/stores/copy/copy-session.ts";
import { copyStore } from "../src/stores/copy/copy-store.ts";
import { digestOf } from "../src/stores/doctor/log-digest.ts";
import { openJsonlStore } from "../src/stores/jsonl/index.ts";
import { openMemoryStore } from "../src/stores/memory/index.ts";
import { checkpointAt, contentsOf, fillStore, makeDirectory, openIn, say } from "./moving/sample-store.ts";
import { backends } from "./store-backends.ts";

const pairs = backends.flatMap((from) => backends.map((to) => [from.name, to.name, from, to] as const));

test.for(pairs)(
  "copyStore copies everything from %s to %s, and checkStore has no findings",
  async ([, , one, other]) => {
    const [from, to] = [await openIn(one), await openIn(other)];
    await fillStore(from);
    const { failures, sessions, forked, checkpoints } = await copyStore(from, to);
    expect(failures).toEqual([]);
    expect(await contentsOf(to)).toEqual(await contentsOf(from));
    expect([sessions, checkpoints]).toEqual([7, 2]);
    // `side`, `deep` and `void` are copied by forking; `path` and `orphan` cannot be.
    expect(forked).toBe(to.capabilities.forkByReference ? 3 : 0);
    expect(await to.head("gone")).toBeNull();
    expect((await checkStore(to)).findings).toEqual([]);
    const again = await copyStore(from, to);
    expect(again).toMatchObject({ sessions: 7, entriesWritten: 0, forked: 0, failures: [] });
  },
);

describe("copySession", () => {
  test("returns its result, and reports its progress", async () => {
    const [from, to] = [openMemoryStore(), openMemoryStore()];
    await from.create(createHeader({ id: "a" }), { entries: Array.from({ length: 1200 }, (_, i) => say(`e${i}`)) });
    const seen: unknown[] = [];
    const copied = await copySession(from, to, "a", { onProgress: (progress) => seen.push(progress) });
    const digest = (await digestOf(from, "a"))?.digest;
    expect(copied).toEqual({ sessionId: "a", version: 1200, digest, appended: 1200, checkpoints: 0, forked: false });
    expect(seen).toEqual([500, 1000, 1200].map((version) => ({ sessionId: "a", version, versionTotal: 1200 })));
  });

  test("stops when its signal aborts, and the next copy continues there", async () => {
    const [from, to] = [openMemoryStore(), openMemoryStore()];
    await from.create(createHeader({ id: "a" }), { entries: Array.from({ length: 1600 }, (_, i) => say(`e${i}`)) });
    const controller = new AbortController();
    const onProgress = ({ version }: { version: number }) => version === 1000 && controller.abort(new Error("enough"));
    const stopped = copySession(from, to, "a", {
      onProgress: (each) => void onProgress(each),
      signal: controller.signal,
    });
    await expect(stopped).rejects.toThrow("enough");
    expect((await to.head("a"))?.version).toBe(1000);
    expect(await copySession(from, to, "a")).toMatchObject({ version: 1600, appended: 600 });
    expect(await digestOf(to, "a")).toEqual(await digestOf(from, "a"));
  });

  test("continues from any position of a log with branches, facts and types of a later version", async () => {
    const from = openMemoryStore();
    await fillStore(from);
    const entries: Entry[] = [];
    for await (const entry of from.read("main")) entries.push(entry);
    const header = (await from.head("main"))?.header as SessionHeader;
    for (let version = 0; version <= entries.length; version++) {
      await using to = openMemoryStore();
      await to.create(header, { entries: entries.slice(0, version) });
      expect(await copySession(from, to, "main")).toMatchObject({ appended: entries.length - version, checkpoints: 2 });
      expect(await digestOf(to, "main")).toEqual(await digestOf(from, "main"));
      expect((await checkStore(to)).findings).toEqual([]);
    }
  });

  test("copies entries that are appended meanwhile", async () => {
    const [from, to] = [openMemoryStore(), openMemoryStore()];
    await from.create(createHeader({ id: "a" }), { entries: [say("first")] });
    let added = 0;
    const grow = async (): Promise<void> => {
      if (added++ >= 5) return;
      const { head } = await from.append("a", [say(`more-${added}`)]);
      await from.saveCheckpoint(checkpointAt(head, `c${added}`));
    };
    const growing: Promise<void>[] = [];
    const copied = await copySession(from, to, "a", { onProgress: () => void growing.push(grow()) });
    await Promise.all(growing);
    expect(copied).toMatchObject({ version: 6, appended: 6, checkpoints: 5 });
    expect(await contentsOf(to)).toEqual(await contentsOf(from));
  });

  test("copies a checkpoint that is saved meanwhile", async () => {
    const [from, to] = [openMemoryStore(), openMemoryStore()];
    const head = await from.create(createHeader({ id: "a" }), { entries: [say("first")] });
    const onProgress = (): void => void from.saveCheckpoint(checkpointAt(head, "late"));
    expect(await copySession(from, to, "a", { onProgress })).toMatchObject({ version: 1, checkpoints: 1 });
    expect(await contentsOf(to)).toEqual(await contentsOf(from));
  });

  test("refuses a missing session, and a target that is the source", async () => {
    await using store = openMemoryStore();
    await expect(copySession(store, openMemoryStore(), "a")).rejects.toMatchObject({ code: "SESSION_NOT_FOUND" });
    await expect(copySession(store, store, "a")).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(copyStore(store, store)).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await expect(copyStore(store, openMemoryStore(), { concurrency: 0 })).rejects.toMatchObject({
      code: "INVALID_OPTION",
    });
  });
});

describe("a target that already has another session", () => {
  const header = createHeader({ id: "a", userId: "ann" });
  const entries = [say("one"), say("two"), say("three")];
  const differing: readonly (readonly [string, (to: SessionStore) => Promise<unknown>, string])[] = [
    ["another header", (to) => to.create({ ...header, userId: "bob" }), "SESSION_EXISTS"],
    ["another entry", (to) => to.create(header, { entries: [say("one"), say("2")] }), "SESSION_EXISTS"],
    ["another content of an entry", (to) => to.create(header, { entries: [say("one", "else")] }), "SESSION_EXISTS"],
    [
      "another time",
      (to) => to.create(header, { entries: [{ ...say("one"), timestamp: "2001-01-01T00:00:00.000Z" }] }),
      "SESSION_EXISTS",
    ],
    [
      "more entries",
      async (to) => {
        await copySession(await source(), to, "a");
        await to.append("a", [say("four")]);
      },
      "SESSION_EXISTS",
    ],
    [
      "the session as a deleted one",
      async (to) => {
        await to.create(header);
        await to.delete("a");
      },
      "SESSION_EXISTS",
    ],
    [
      "a checkpoint with the same id in another session",
      async (to) => {
        await to.saveCheckpoint({ ...checkpointAt(await to.create(createHeader({ id: "b" })), "mine"), metadata: {} });
      },
      "CHECKPOINT_EXISTS",
    ],
  ];

  async function source(): Promise<SessionStore> {
    const from = openMemoryStore();
    const times = entries.map((entry, index) => ({ ...entry, timestamp: `2024-01-01T00:00:0${index}.000Z` }));
    await from.saveCheckpoint(checkpointAt(await from.create(header, { entries: times }), "mine"));
    return from;
  }

  test.for(differing)("is refused with one sentence and not changed, if it has %s", async ([, make, code]) => {
    const [from, to] = [await source(), openMemoryStore()];
    await make(to);
    const before = [await contentsOf(to), await to.count({ deleted: true })];
    await expect(copySession(from, to, "a")).rejects.toMatchObject({
      code,
      message: expect.stringMatching(/^The target already has .*[^.]\.$/),
    });
    expect([await contentsOf(to), await to.count({ deleted: true })]).toEqual(before);
  });

  test("is refused with both numbers of entries, if it has more", async () => {
    const to = openMemoryStore();
    await copySession(await source(), to, "a");
    await to.append("a", [say("four")]);
    await expect(copySession(await source(), to, "a")).rejects.toThrow("has 4 entries, and the source 3");
  });

  test("does not prevent copyStore from copying the other sessions", async () => {
    const [from, to] = [await source(), openMemoryStore()];
    await from.create(createHeader({ id: "b" }), { entries: [say("b1")] });
    await to.create({ ...header, userId: "bob" });
    const { sessions, failures } = await copyStore(from, to);
    expect([sessions, failures.map(({ sessionId, error }) => [sessionId, error.code])]).toEqual([
      1,
      [["a", "SESSION_EXISTS"]],
    ]);
    expect((await to.head("b"))?.version).toBe(1);
  });
});

describe("copyStore", () => {
  test("copies only the sessions of a query; a fork without its source is copied with all entries", async () => {
    const [from, to] = [openMemoryStore(), openMemoryStore()];
    await fillStore(from);
    expect(await copyStore(from, to, { query: { userId: "ann" } })).toMatchObject({ sessions: 1, forked: 0 });
    expect((await to.list()).items.map((head) => head.header)).toEqual([(await from.head("side"))?.header]);
    expect(await digestOf(to, "side")).toEqual(await digestOf(from, "side"));
  });

  test.for(backends.map((backend) => [backend.name, backend] as const))(
    "with includeDeleted, copies deleted sessions from %s as deleted ones",
    async ([, backend]) => {
      const [from, to] = [await openIn(backend), openMemoryStore()];
      await fillStore(from);
      const live = await contentsOf(from);
      const copied = await copyStore(from, to, { includeDeleted: true });
      expect(copied).toMatchObject({ sessions: 9, failures: [] });
      expect(await contentsOf(from)).toEqual(live);
      for (const store of [from, to]) {
        expect((await store.list({ deleted: true })).items.map(({ header }) => header.id).sort()).toEqual([
          "gone",
          "source",
        ]);
      }
      expect(await copyStore(from, to, { includeDeleted: true })).toMatchObject({ sessions: 9, entriesWritten: 0 });
      // The deleted source of `orphan` was copied before it.
      expect(copied.forked).toBe(4);
      expect(await to.undelete("gone")).toBe(true);
      expect((await to.getEntry("gone", "g1"))?.type).toBe("message");
    },
  );

  test("copies sessions that are created, and entries that are appended, meanwhile", async () => {
    const [from, to] = [openMemoryStore(), openMemoryStore()];
    for (let i = 0; i < 5; i++) await from.create(createHeader({ id: `s${i}` }), { entries: [say("a")] });
    let made = 0;
    const growing: Promise<unknown>[] = [];
    const onProgress = (): void => {
      if (made++ >= 5) return;
      growing.push(from.create(createHeader({ id: `late${made}` })), from.append("s0", [say(`b${made}`)]));
    };
    const { failures, sessions } = await copyStore(from, to, { concurrency: 1, onProgress });
    await Promise.all(growing);
    expect([failures, sessions]).toEqual([[], 10]);
    expect(await contentsOf(to)).toEqual(await contentsOf(from));
  });

  test("reads the copy back, and fails if it differs", async () => {
    const [from, to] = [openMemoryStore(), openMemoryStore()];
    await from.create(createHeader({ id: "a" }), { entries: [say("one"), say("two")] });
    // A target that changes the times of entries.
    const forgetful: SessionStore = Object.create(to, {
      create: {
        value: (header: Parameters<SessionStore["create"]>[0], { entries = [] }: { entries?: readonly object[] }) =>
          to.create(header, {
            entries: entries.map((entry) => ({ ...entry, timestamp: "2001-01-01T00:00:00.000Z" }) as never),
          }),
      },
      head: { value: to.head.bind(to) },
      read: { value: to.read.bind(to) },
      listCheckpoints: { value: to.listCheckpoints.bind(to) },
      loadCheckpoint: { value: to.loadCheckpoint.bind(to) },
      ping: { value: to.ping.bind(to) },
      eraser: { value: to.eraser },
    });
    await expect(copySession(from, forgetful, "a")).rejects.toMatchObject({ code: "STORE_FAILED" });
    expect((await copyStore(from, forgetful)).failures).toHaveLength(1);
  });

  test("stops immediately if the target is read-only, or a store does not answer any more", async () => {
    const [from, to] = [openMemoryStore(), openMemoryStore()];
    for (const id of ["a", "b"]) await from.create(createHeader({ id }));
    const readOnly = await openJsonlStore({ directory: await makeDirectory(), readOnly: true });
    await expect(copyStore(from, readOnly)).rejects.toMatchObject({ code: "READ_ONLY" });
    await readOnly.close();
    await to.close();
    await expect(copyStore(from, to)).rejects.toMatchObject({ code: "STORE_CLOSED" });
  });
});
