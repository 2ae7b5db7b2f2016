import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import postgres from "postgres";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { importSession } from "../src/export/index.ts";
import { createHeader, type Entry, type SessionHead, SessionManager, type SessionStore } from "../src/index.ts";
import { bodyOf } from "../src/session/log/entry.ts";
import { SessionTree } from "../src/tree/session-tree.ts";
import { erasedEntry } from "../src/session/log/erased-entry.ts";
import type { StoreEraser } from "../src/session/store.ts";
import { copySession } from "../src/stores/copy/copy-session.ts";
import { copyStore } from "../src/stores/copy/copy-store.ts";
import { checkStore } from "../src/stores/doctor/check-store.ts";
import { digestOf } from "../src/stores/doctor/log-digest.ts";
import { openJsonlStore } from "../src/stores/jsonl/index.ts";
import { openMemoryStore } from "../src/stores/memory/index.ts";
import { openPostgresStore } from "../src/stores/postgres/index.ts";
import { openSqliteStore } from "../src/stores/sqlite/index.ts";
import { filesWith, rawTracesOf } from "./erase/raw-traces.ts";
import { exported, tracesOf } from "./erase/traces.ts";
import { ADA, BOB, makeWorld, said, sayInEveryForm, variantsOf, type World } from "./erase/world.ts";
import { postgresUrl } from "./postgres-server.ts";
import { backends } from "./store-backends.ts";

let directory: string;
/** A new word for each test, because some stores share their files. */
let word: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "skein-erase-"));
  word = `quetzal${randomBytes(8).toString("hex")}`;
  vi.stubEnv("SKEIN_HOME", join(directory, "home"));
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

for (const backend of backends) {
  describe(`erasing a person from the ${backend.name} store`, () => {
    const inWorld = async (
      run: (world: World, store: SessionStore) => Promise<void>,
      options: { readonly files?: boolean } = {},
    ): Promise<void> => {
      await using store = await backend.open(join(directory, "store"));
      await run(await makeWorld(store, word, options), store);
    };
    const inWorldWithoutFiles = (run: (world: World, store: SessionStore) => Promise<void>): Promise<void> =>
      inWorld(run, { files: false });

    test("leaves no trace of their words in any call, and does not change anything of others", () =>
      inWorld(async ({ manager, untouched, sessions }, store) => {
        expect(await tracesOf(store, word)).not.toEqual([]);
        const before = await Promise.all(untouched.map((id) => digestOf(store, id)));
        const report = await manager.erase({ userId: ADA }, { forks: "erase" });
        expect(report).toMatchObject({ sessions, checkpoints: 3, snapshots: 1, keptByForks: [] });
        expect(await tracesOf(store, word)).toEqual([]);
        expect(await tracesOf(store, ADA)).toEqual([]);
        expect(await Promise.all(untouched.map((id) => digestOf(store, id)))).toEqual(before);
        expect(await readdir(join(directory, "home", "snapshots"))).toEqual([]);
        expect((await checkStore(store)).findings).toEqual([]);
        const woven = (await store.head("woven")) as SessionHead;
        expect((await store.settings("woven", woven.path)).variables).toEqual({ his: "his own" });
      }));

    test("leaves out of contexts what their edits had left out or replaced", () =>
      inWorldWithoutFiles(async ({ manager }, store) => {
        await manager.erase({ userId: ADA });
        const edits = [];
        for (const id of [1, 2, 3, 4]) edits.push(bodyOf((await store.getEntry("group", `group-edit-${id}`)) as Entry));
        expect(edits).toEqual([
          { type: "context_edit", targetId: "group-2", message: null },
          { type: "context_edit", targetId: "group-3", message: null },
          { type: "context_edit", targetId: "group-1", message: null },
          { type: "context_edit", undo: "group-edit-3" },
        ]);
        const tree = await SessionTree.on(store, "group");
        const { messages } = await tree.buildContext("group-edit-4");
        expect(messages.map(({ content }) => content)).toEqual(["welcome"]);
      }));

    test("with a rewrite removes a hundred variants of a word from all raw files, pages and keys", () =>
      inWorld(async ({ manager }, store) => {
        const variants = variantsOf(word);
        expect(new Set(variants).size).toBe(100);
        await sayInEveryForm(manager, "group", variants);
        // Long enough that a store makes an index beside the log.
        await store.append("group", [said("long", "x".repeat(500_000))]);
        await store.search(word);
        await manager.erase({ userId: ADA }, { forks: "erase", rewrite: true });
        expect(await rawTracesOf(backend.name, directory, word)).toEqual([]);
        // Servers of databases have pages of other tests with the same user. Listings, ledgers and leases name users, too.
        expect(await filesWith(directory, ADA)).toEqual([]);
      }));

    test("reports what forks of others keep, and erases it there if a later erasure asks for it", () =>
      inWorldWithoutFiles(async ({ manager, forks }, store) => {
        const report = await manager.erase({ userId: ADA });
        expect(new Set(report.keptByForks.map(({ forkId }) => forkId))).toEqual(new Set(forks));
        const traces = (await tracesOf(store, word)).filter((trace) => !trace.startsWith("search"));
        expect(new Set(traces.map((trace) => trace.split(":")[0]))).toEqual(new Set(forks));
        await manager.erase({ userId: ADA }, { forks: "erase" });
        expect(await tracesOf(store, word)).toEqual([]);
        expect((await checkStore(store)).findings).toEqual([]);
      }));

    test("records them as the author when runs and merges repeat their words, also in their archive", () =>
      inWorldWithoutFiles(async ({ manager }, store) => {
        const forms = new Set<string>();
        for (const id of ["steered", "clash"])
          for await (const entry of store.read(id))
            if (JSON.stringify(entry).includes(word)) forms.add(`${entry.type} ${roleOf(entry)} ${entry.by}`);
        expect([...forms].sort()).toEqual([
          `approval  ${ADA}`,
          `cancel  ${ADA}`,
          `custom_message  ${ADA}`,
          `message tool ${ADA}`,
          `message user ${ADA}`,
          `queued  ${ADA}`,
          `variables  ${ADA}`,
        ]);
        const pieces: Uint8Array[] = [];
        for await (const piece of manager.exportUser(ADA)) pieces.push(piece);
        const archive = Buffer.concat(pieces).toString();
        for (const said of ["go to", "not with", "clashing", "before"]) expect(archive).toContain(`${said} ${word}`);
      }));

    test("previews what it will erase, and changes nothing", () =>
      inWorld(async ({ manager, untouched, shared }, store) => {
        const digests = (): Promise<unknown> =>
          Promise.all([...untouched, "own", "trunk", "group"].map((id) => digestOf(store, id)));
        const before = await digests();
        const dry = await manager.erase({ userId: ADA }, { dryRun: true });
        expect(await digests()).toEqual(before);
        const report = await manager.erase({ userId: ADA });
        expect(dry).toMatchObject({ sessions: report.sessions, checkpoints: 3, snapshots: 1 });
        expect(new Set(dry.keptByForks)).toEqual(new Set(report.keptByForks));
        expect(shared).toEqual(expect.arrayContaining(report.notCovered.map(({ sessionId }) => sessionId)));
      }));

    test("does not change deleted sessions of others, their times included", () =>
      inWorldWithoutFiles(async ({ manager }, store) => {
        await store.create(createHeader({ id: "discarded", userId: BOB }), { entries: [said("discarded-1", "mine")] });
        await store.delete("discarded");
        const before = new Date(Date.now() + 1).toISOString();
        await expect.poll(() => new Date().toISOString() > before).toBe(true);
        await manager.erase({ userId: ADA }, { forks: "erase" });
        expect(await store.purge({ sessionId: "discarded", before })).toBe(1);
      }));

    test("returns the same report when it is repeated", () =>
      inWorld(async ({ manager }) => {
        const report = await manager.erase({ userId: ADA });
        expect(await manager.erase({ userId: ADA })).toEqual(report);
      }));

    test("continues where it was aborted, and returns the same report", () =>
      inWorld(async ({ manager }, store) => {
        const expected = await manager.erase({ userId: ADA }, { dryRun: true, forks: "erase" });
        const stop = new AbortController();
        const stopped = manager.erase(
          { userId: ADA },
          {
            forks: "erase",
            signal: stop.signal,
            onProgress: ({ sessionsDone, sessionsTotal }) => sessionsDone === sessionsTotal - 1 && stop.abort(),
          },
        );
        await expect(stopped).rejects.toThrow();
        const report = await manager.erase({ userId: ADA }, { forks: "erase" });
        expect(report).toMatchObject({ sessions: expected.sessions, checkpoints: 3, snapshots: 1 });
        expect(report.entries).toBeGreaterThanOrEqual(expected.entries);
        expect(await tracesOf(store, word)).toEqual([]);
      }));

    test("removes many sessions in batches; killed between two batches, it still returns the same report", async () => {
      await using store = await backend.open(join(directory, "store"));
      for (let index = 0; index < 24; index += 2) {
        await store.create(createHeader({ id: `s${index}`, userId: ADA }), { entries: [said("first", word)] });
        await store.fork(`s${index}`, createHeader({ id: `s${index + 1}`, userId: ADA }));
      }
      for (const id of ["s2", "s3", "s20"]) await store.delete(id);
      let times = 0;
      const dying = new Proxy(store, {
        get(target, name) {
          const value = Reflect.get(target, name);
          if (typeof value !== "function") return value;
          if (name !== "heads") return value.bind(target);
          return (ids: readonly string[]) => (++times === 2 ? Promise.reject(new Error("killed")) : target.heads(ids));
        },
      });
      await expect(new SessionManager({ store: dying }).erase({ userId: ADA })).rejects.toThrow("killed");
      expect((await store.count({ userId: ADA })) + (await store.count({ userId: ADA, deleted: true }))).toBe(14);
      const report = await new SessionManager({ store }).erase({ userId: ADA });
      expect(report).toMatchObject({ sessions: 24, entries: 12, keptByForks: [], notCovered: [] });
      expect([await store.count(), await store.count({ deleted: true })]).toEqual([0, 0]);
      expect((await checkStore(store)).findings).toEqual([]);
    });

    test("finds their words in a session derived from theirs without a fork", async () => {
      await using store = await backend.open(join(directory, "store"));
      await store.create(createHeader({ id: "hers", userId: ADA }), { entries: [said("hers-1", word)] });
      const lineage = { parents: ["hers"], operator: "copy", kind: "op_detach", extras: [] } as const;
      const entries = [said("hers-1", word), said("made-1", "in my own words")];
      await store.create(createHeader({ id: "made", userId: BOB, lineage }), { entries });
      await new SessionManager({ store }).erase({ userId: ADA }, { forks: "erase" });
      expect(await tracesOf(store, word)).toEqual([]);
    });

    test("prevents copies and imports from restoring erased sessions and entries", () =>
      inWorld(async ({ manager }, store) => {
        const backup = openMemoryStore();
        for (const id of ["own", "group", "fork", "calm"]) await copySession(store, backup, id);
        const [own, group] = [await exported(store, "own"), await exported(store, "group")];
        await manager.erase({ userId: ADA }, { forks: "erase" });
        await expect(copySession(backup, store, "own")).rejects.toMatchObject({ code: "ERASED" });
        for (const id of ["group", "fork"]) {
          await store.delete(id);
          await store.purge({ sessionId: id });
          await expect(copySession(backup, store, id)).rejects.toMatchObject({ code: "ERASED" });
        }
        await expect(importSession(store, linesOf(own))).rejects.toMatchObject({ code: "ERASED" });
        await expect(importSession(store, linesOf(own), { id: "other" })).rejects.toMatchObject({ code: "ERASED" });
        await importSession(store, linesOf(group), { trust: true });
        expect(await tracesOf(store, word)).toEqual([]);
        expect((await store.head("group"))?.version).toBeGreaterThan(5);
      }));

    test("makes every copy of the store refuse erased entries, and keep what forks of others keep", () =>
      inWorld(async ({ manager, forks }, store) => {
        const backup = openMemoryStore();
        await copySession(store, backup, "own");
        const own = await exported(store, "own");
        await manager.erase({ userId: ADA });
        await using copy = await backend.open(join(directory, "copy"));
        await using next = openMemoryStore();
        for (const [from, to] of [
          [store, copy],
          [copy, next],
          [store, copy],
        ] as const)
          expect((await copyStore(from, to)).failures.map(({ error }) => error.message)).toEqual([]);
        for (const to of [copy, next]) {
          expect((await to.heads(forks)).map(versionOf)).toEqual((await store.heads(forks)).map(versionOf));
          await expect(copySession(backup, to, "own")).rejects.toMatchObject({ code: "ERASED" });
          await expect(importSession(to, linesOf(own), { id: "other" })).rejects.toMatchObject({ code: "ERASED" });
        }
      }));

    test("erases one session, and not the others of its user", () =>
      inWorldWithoutFiles(async ({ manager }, store) => {
        const before = await store.count({ userId: BOB });
        const report = await manager.erase({ sessionId: "branch" });
        expect(report).toMatchObject({ sessions: 1, keptByForks: [] });
        expect(await store.count({ userId: BOB })).toBe(before - 1);
        expect((await tracesOf(store, word)).filter((trace) => /^(branch|trunk)/.test(trace))).toEqual([]);
      }));

    test("finds their words also if a session between theirs and a fork is deleted", () =>
      inWorldWithoutFiles(async ({ manager }, store) => {
        await store.create(createHeader({ id: "alone", userId: ADA }), { entries: [said("alone-1", word)] });
        await store.fork("alone", createHeader({ id: "between", userId: ADA }));
        await store.append("between", [said("between-1", "nothing")]);
        await store.fork("between", createHeader({ id: "beyond", userId: BOB }));
        for (const id of ["own-branch", "between"]) {
          await store.delete(id);
          await store.purge({ sessionId: id });
        }
        const report = await manager.erase({ userId: ADA });
        expect(report.keptByForks).toContainEqual({ sessionId: "own", forkId: "fork", userId: BOB });
        await manager.erase({ userId: ADA }, { forks: "erase" });
        // An earlier purged session cannot be attributed to her; entries without her as author stay in it.
        const traces = (await tracesOf(store, word)).filter((trace) => /own-\d|own-set|alone/.test(trace));
        expect(traces).toEqual([]);
      }));

    test("keeps entries appended directly after a log was replaced, also after it is opened again", () =>
      inWorldWithoutFiles(async (_, store) => {
        const entries: Entry[] = [];
        for await (const entry of store.read("calm")) entries.push(entry);
        await store.append("calm", [said("calm-2", "first")]);
        expect(await store.eraser.replace("calm", 1, entries)).toBe(false);
        for await (const entry of store.read("calm", { after: 0 })) entries.push(entry);
        expect(await store.eraser.replace("calm", 2, entries.map(erasedEntry))).toBe(true);
        await store.append("calm", [said("calm-3", "right after")]);
        const other = backend.name === "memory" ? store : await backend.open(join(directory, "store"));
        const types: string[] = [];
        for await (const { type } of other.read("calm")) types.push(type);
        expect(types).toEqual(["erased", "erased", "message"]);
        if (other !== store) await other.close();
      }));

    test("keeps the checkpoints of a session that it has cleaned", () =>
      inWorldWithoutFiles(async ({ manager }, store) => {
        const kept = await manager.checkpoint("group");
        await manager.erase({ userId: ADA }, { forks: "erase" });
        expect(await store.loadCheckpoint(kept.id)).toEqual(kept);
        // A listing may update the index that leads to them.
        await store.list();
        expect(await store.loadCheckpoint(kept.id)).toEqual(kept);
        expect(await store.listCheckpoints("group")).toEqual([kept]);
        expect(await store.deleteCheckpoint(kept.id)).toBe(true);
        expect(await store.loadCheckpoint(kept.id)).toBeNull();
      }));

    test("lets other users continue an erased session", () =>
      inWorldWithoutFiles(async ({ manager }, store) => {
        await manager.erase({ userId: ADA }, { forks: "erase" });
        for (const id of ["group", "fork", "trunk"]) {
          const { version } = (await store.head(id)) ?? { version: 0 };
          await store.append(id, [said(`${id}-later`, "life goes on")]);
          expect((await store.head(id))?.version).toBe(version + 1);
        }
        expect((await checkStore(store)).findings).toEqual([]);
      }));
  });
}

test("leaves nothing in the statistics of PostgreSQL, whenever the tables are analyzed", async () => {
  const url = await postgresUrl();
  const schema = `skein_${word.slice(-8)}`;
  await using store = await openPostgresStore({ url, schema });
  const { manager } = await makeWorld(store, word);
  const sql = postgres(url, { max: 1, onnotice: () => {} });
  try {
    const sampled = async (): Promise<boolean> => {
      const rows = await sql`SELECT row_to_json(s)::text AS row FROM pg_stats s WHERE schemaname = ${schema}`;
      return rows.some(({ row }) => row.includes(word) || row.includes(ADA));
    };
    await sql.unsafe("ANALYZE");
    expect(await sampled()).toBe(false);
    // As in a store of an earlier version.
    await sql.unsafe(`ALTER TABLE "${schema}".entries ALTER COLUMN body SET STATISTICS 1000`);
    await sql.unsafe(`ALTER TABLE "${schema}".sessions ALTER COLUMN user_id SET STATISTICS 1000`);
    for (let copies = 0; copies < 3; copies++)
      await store.append("group", [said(`often-${copies}`, word)], { by: ADA, guard: { holds: true } });
    await sql.unsafe("ANALYZE");
    expect(await sampled()).toBe(true);
    await manager.erase({ userId: ADA }, { forks: "erase", rewrite: true });
    expect(await sampled()).toBe(false);
    await sql.unsafe("VACUUM (ANALYZE)");
    expect(await sampled()).toBe(false);
    expect(await rawTracesOf("postgres", directory, word)).toEqual([]);
    await sql.unsafe(`DROP SCHEMA "${schema}" CASCADE`);
  } finally {
    await sql.end();
  }
});

function roleOf(entry: Entry): string {
  return entry.type === "message" ? entry.message.role : "";
}

function versionOf(head: SessionHead | null): number | null {
  return head?.version ?? null;
}

test("removes at most ten sessions in one transaction, and fewer if they are long", async () => {
  await using store = await openSqliteStore({ path: join(directory, "store.db") });
  for (let index = 0; index < 14; index++) {
    const entries = Array.from({ length: index < 3 ? 600 : 1 }, (_, seq) => said(`entry-${seq}`, word));
    await store.create(createHeader({ id: `s${index}`, userId: ADA }), { entries });
  }
  const remove = vi.spyOn(store.eraser as Required<StoreEraser>, "remove");
  const report = await new SessionManager({ store }).erase({ userId: ADA });
  expect(report).toMatchObject({ sessions: 14, entries: 1811 });
  expect(remove.mock.calls.map(([ids]) => ids.length)).toEqual([10, 2, 1, 1]);
});

test("a purge removes the parts of a session's file that a repair has set aside, and nothing of another session", async () => {
  await using store = await openJsonlStore({ directory });
  for (const id of ["broken", "other"]) await store.create(createHeader({ id, userId: ADA }), {});
  const files = (await readdir(directory)).filter((name) => name.endsWith(".jsonl"));
  for (const name of files) await writeFile(join(directory, `${name}.damaged-2024-01-01T00-00-00-000Z`), word);
  await store.delete("broken");
  expect(await store.purge({ userId: "nobody" })).toBe(0);
  expect(await store.purge({ userId: ADA })).toBe(1);
  const left = (await readdir(directory)).filter((name) => name.includes(".damaged-"));
  expect(left).toEqual([expect.stringContaining("other")]);
});

test("a deleted session of another user that a killed erasure had undeleted is deleted again by the next one", async () => {
  const store = openMemoryStore();
  await store.create(createHeader({ id: "hers", userId: ADA }), { entries: [said("first", word)] });
  await store.fork("hers", createHeader({ id: "his", userId: BOB }));
  await store.append("his", [said("second", "words of his own")]);
  await store.delete("his");
  let killed = false;
  const dying = new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (typeof value !== "function") return value;
      return (...args: unknown[]) => {
        if (killed) return Promise.reject(new Error("killed"));
        killed = name === "undelete";
        return value.apply(target, args);
      };
    },
  });
  const options = { forks: "erase" } as const;
  await expect(new SessionManager({ store: dying }).erase({ userId: ADA }, options)).rejects.toThrow("killed");
  expect(await store.head("his")).not.toBeNull();
  await new SessionManager({ store }).erase({ userId: ADA }, options);
  expect(await store.head("his")).toBeNull();
  await store.undelete("his");
  const kinds: string[] = [];
  for await (const { type } of store.read("his")) kinds.push(type);
  expect(kinds).toEqual(["erased", "message"]);
});

function linesOf(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}
