import { randomUUID } from "node:crypto";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Database from "libsql";
import postgres from "postgres";
import { describe, expect, test } from "vitest";
import { createHeader } from "../src/session/log/header.ts";
import type { SessionStore } from "../src/session/store.ts";
import { checkStore } from "../src/stores/doctor/check-store.ts";
import { openJsonlStore } from "../src/stores/jsonl/index.ts";
import { openMemoryStore } from "../src/stores/memory/index.ts";
import { openPostgresStore } from "../src/stores/postgres/index.ts";
import { openSqliteStore } from "../src/stores/sqlite/index.ts";
import type { FindingKind } from "../src/stores/doctor/store-finding.ts";
import { fill, tamper, tamperFile } from "./doctor/damage.ts";
import { fillStore, makeDirectory, openIn, say } from "./moving/sample-store.ts";
import { postgresUrl } from "./postgres-server.ts";
import { backends } from "./store-backends.ts";

test.for(backends.map((backend) => [backend.name, backend] as const))(
  "finds nothing wrong with a %s store that is whole, and says how much it looked at",
  async ([, backend]) => {
    const store = await openIn(backend);
    await fill(store);
    await fillStore(store);
    const seen: number[] = [];
    const report = await checkStore(store, { onProgress: ({ sessionsDone }) => seen.push(sessionsDone) });
    expect(report.findings).toEqual([]);
    expect(report.sessions).toBe(10);
    expect(report.entries).toBeGreaterThan(100);
    expect(seen).toEqual(Array.from({ length: 10 }, (_, i) => i + 1));
    expect(await checkStore(store, { sessions: ["a", "f"] })).toMatchObject({ sessions: 2, findings: [] });
    expect((await checkStore(store, { sessions: ["nobody"] })).findings).toMatchObject([{ kind: "unreadable" }]);
  },
);

const A = "(SELECT key FROM sessions WHERE id = 'a')";
const damages: readonly (readonly [FindingKind, string, string, string])[] = [
  ["seq", "an entry that is missing", "a", `DELETE FROM entries WHERE session_key = ${A} AND seq = 40`],
  [
    "duplicate",
    "an id that is there twice",
    "a",
    `UPDATE entries SET body = replace(body, '"m97"', '"m3"') WHERE session_key = ${A} AND seq = 97`,
  ],
  [
    "parent",
    "a parent that is not there",
    "a",
    `UPDATE entries SET body = replace(body, '"m79"', '"nowhere"') WHERE session_key = ${A} AND seq = 80`,
  ],
  [
    "target",
    "a label on what is not there",
    "a",
    `UPDATE entries SET body = replace(body, '"m3"', '"nowhere"') WHERE session_key = ${A} AND id = 'label'`,
  ],
  [
    "head",
    "a head that has forgotten what was spent",
    "a",
    `UPDATE entries SET state = json_set(state, '$.messages', 7) WHERE session_key = ${A} AND id = 'end'`,
  ],
  [
    "path",
    "a path that is too short",
    "a",
    `UPDATE entries SET state = json_set(state, '$.depth', 3) WHERE session_key = ${A} AND id = 'm70'`,
  ],
  [
    "entry",
    "an entry that is found elsewhere",
    "a",
    `UPDATE entry_ids SET seq = 9 WHERE session_key = ${A} AND id = 'm8'`,
  ],
  ["checkpoint", "a checkpoint beyond the end", "a", "UPDATE checkpoints SET body = json_set(body, '$.version', 500)"],
  ["checkpoint", "a checkpoint at no node", "a", "UPDATE checkpoints SET body = json_set(body, '$.leafId', 'label')"],
  ["checkpoint", "a checkpoint at a later node", "a", "UPDATE checkpoints SET body = json_set(body, '$.version', 3)"],
  ["listing", "a session under another user", "a", "UPDATE sessions SET user_id = 'eve' WHERE id = 'a'"],
  ["listing", "a session under another directory", "a", "UPDATE sessions SET cwd = '/else' WHERE id = 'a'"],
  ["listing", "a session under another status", "beta", "UPDATE sessions SET status = 'closed' WHERE id = 'beta'"],
  ["idle", "a session that would never expire", "f", "UPDATE sessions SET status = 'closed' WHERE id = 'f'"],
  ["listing", "a request for a run that nobody finds", "beta", "UPDATE sessions SET runs = NULL WHERE id = 'beta'"],
  ["listing", "a run that nobody asked for", "beta", "UPDATE sessions SET runs = runs | 4 WHERE id = 'beta'"],
  ["listing", "a run that never started", "a", "UPDATE sessions SET runs = 2 WHERE id = 'a'"],
  ["listing", "a run that would begin too early", "beta", "UPDATE sessions SET runs_due = '' WHERE id = 'beta'"],
  ["listing", "a run that would never begin", "beta", "UPDATE sessions SET runs_due = NULL WHERE id = 'beta'"],
  ["listing", "a fork that its source does not know", "f", "DELETE FROM session_parents"],
  ["search", "a text that is not in the index", "beta", "DELETE FROM search_index WHERE rowid & 4294967295 = 0"],
  [
    "search",
    "a session that is not in the index",
    "beta",
    "DELETE FROM search_index WHERE rowid & 4294967295 = 4294967295",
  ],
  ["unreadable", "a row that is no JSON", "a", `UPDATE entries SET body = '{' WHERE session_key = ${A} AND seq = 5`],
];

describe("the check of an SQLite store", () => {
  test.for(damages)("finds as %s: %s", async ([kind, , sessionId, statement]) => {
    const path = join(await makeDirectory(), "skein.db");
    await using store = await openSqliteStore({ path });
    await fill(store);
    await store.close();
    tamper(path, statement);
    await using again = await openSqliteStore({ path });
    const { findings } = await checkStore(again);
    expect(findings).toContainEqual({ sessionId, kind, message: expect.stringMatching(/^\S.*\S$/s) });
    for (const finding of findings) expect([sessionId, "f", null]).toContain(finding.sessionId);
  });
});

describe("the check of a directory of files", () => {
  const changes: readonly (readonly [FindingKind, string, string, (text: string) => string])[] = [
    ["unreadable", "a line that is cut", "a", (text) => text.replace(/\{[^\n]*"m30"[^\n]*\n/, '{"type":"mess\n')],
    [
      "fork",
      "a fork that says something else",
      "f",
      (text) => text.replace("turn 7 about llamas", "turn 7 about cats"),
    ],
    ["fork", "a fork that has lost its beginning", "f", (text) => `${text.split("\n").slice(0, 3).join("\n")}\n`],
  ];
  test.for(changes)("finds as %s: %s", async ([kind, , sessionId, change]) => {
    const directory = await makeDirectory();
    await using store = await openJsonlStore({ directory });
    await fill(store);
    await store.close();
    await tamperFile(directory, sessionId, change);
    await using again = await openJsonlStore({ directory });
    const { findings } = await checkStore(again);
    expect(findings).toContainEqual({ sessionId, kind, message: expect.any(String) });
    expect(findings.every((finding) => finding.sessionId === sessionId)).toBe(true);
  });

  test("finds a checkpoint that two files tell differently", async () => {
    const directory = await makeDirectory();
    await using store = await openJsonlStore({ directory });
    await fill(store);
    const state = join(directory, ".state");
    const [name] = (await readdir(state)).filter((each) => each.endsWith(".checkpoints")) as [string];
    const text = await readFile(join(state, name), "utf8");
    await writeFile(join(state, name), text.replaceAll('"sessionId":"a"', '"sessionId":"beta"'));
    expect((await checkStore(store)).findings).toContainEqual(
      expect.objectContaining({ sessionId: "a", kind: "checkpoint" }),
    );
  });
});

describe("the check of a store that lies", () => {
  const lies: readonly (readonly [FindingKind, string | null, Partial<SessionStore>])[] = [
    ["count", null, { count: async () => 7 }],
    ["idle", "f", { listExpired: async () => [] }],
    ["listing", "f", { list: async () => ({ items: [], next: null, damaged: [] }) }],
    ["entry", "a", { getEntry: async () => null }],
    ["search", "beta", { search: async () => [] }],
  ];
  test.for(lies)("finds as %s", async ([kind, sessionId, lie]) => {
    await using store = openMemoryStore();
    await fill(store);
    const { findings } = await checkStore(lying(store, lie));
    expect(findings).toContainEqual(expect.objectContaining({ kind, sessionId }));
  });
  test("finds a session that is listed as it was before", async () => {
    await using store = openMemoryStore();
    await fill(store);
    const before = await store.list();
    await store.append("a", [say("later")]);
    const { findings } = await checkStore(lying(store, { list: async () => before }));
    const message = expect.stringMatching(/behind its head/);
    expect(findings).toContainEqual({ kind: "listing", sessionId: "a", message });
  });
  function lying(store: SessionStore, lie: Partial<SessionStore>): SessionStore {
    return new Proxy(store, {
      get(target, name) {
        if (Object.hasOwn(lie, name)) return lie[name as keyof SessionStore];
        if (name === "capabilities") return { ...target.capabilities, search: "index" };
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }
});

test("finds nothing wrong while others append, delete and make sessions", async () => {
  const path = join(await makeDirectory(), "skein.db");
  await using store = await openSqliteStore({ path });
  await using other = await openSqliteStore({ path });
  await fill(store);
  let running = true;
  const busy = (async (): Promise<number> => {
    let i = 0;
    for (; running; i++) {
      const id = `n${i % 20}`;
      if (!(await other.undelete(id)) && (await other.head(id)) === null)
        await other.create(createHeader({ id, userId: "ann" }), { entries: [say("x")] });
      await other.append("beta", [say(`b-${i}`), { type: "status", status: i % 2 === 0 ? "closed" : "active" }]);
      if (i % 3 === 0) await other.delete(id);
      // As long as a log that grows is read, its reader has something to do.
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    return i;
  })();
  const findings: unknown[] = [];
  for (let round = 0; round < 3; round++) findings.push(...(await checkStore(store)).findings);
  running = false;
  expect(await busy).toBeGreaterThan(5);
  expect(findings).toEqual([]);
});

test("is not misled by a session that was made under the id of a purged one", async () => {
  await using store = openMemoryStore();
  await fill(store);
  await store.delete("a");
  await store.purge("9999-01-01T00:00:00.000Z");
  await store.create(createHeader({ id: "a" }), { entries: Array.from({ length: 30 }, (_, i) => say(`new${i}`)) });
  expect((await checkStore(store)).findings).toEqual([]);
});

test("is not misled by a session that is another one at every look", async () => {
  await using store = openMemoryStore();
  await fill(store);
  let looks = 0;
  const restless = new Proxy(store, {
    get(target, name) {
      if (name === "list")
        return async (query: Parameters<SessionStore["list"]>[0]) => {
          const page = await store.list(query);
          await store.append("beta", [{ type: "status", status: looks++ % 2 === 0 ? "closed" : "active" }]);
          return page;
        };
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  expect((await checkStore(restless)).findings).toEqual([]);
  expect(looks).toBeGreaterThan(10);
});

test("stops when it is told to, and says when the store does not answer", async () => {
  const store = openMemoryStore();
  await fill(store);
  await expect(checkStore(store, { signal: AbortSignal.abort(new Error("enough")) })).rejects.toThrow("enough");
  await store.close();
  await expect(checkStore(store)).rejects.toMatchObject({ code: "STORE_CLOSED" });
});

test.each(["sqlite", "postgres"] as const)(
  "finds no leftovers in %s after a fork is purged that was searched, and those that someone else leaves",
  async (kind) => {
    const directory = await mkdtemp(join(tmpdir(), "skein-leftovers-"));
    const schema = `skein_${randomUUID().replaceAll("-", "")}`;
    try {
      await using store =
        kind === "sqlite"
          ? await openSqliteStore({ path: join(directory, "skein.db") })
          : await openPostgresStore({ url: await postgresUrl(), schema });
      await store.create(createHeader({ id: "a" }), { entries: Array.from({ length: 70 }, (_, i) => say(`a${i}`)) });
      await store.fork("a", createHeader({ id: "f" }), { at: "a4" });
      await store.append("f", [say("quetzal")]);
      await store.search("quetzal");
      await store.delete("f");
      await store.purge({ sessionId: "f" });
      expect((await checkStore(store)).findings).toEqual([]);
      await store.fork("a", createHeader({ id: "g" }), { at: "a4" });
      await store.delete("a");
      await store.purge({ sessionId: "a" });
      await store.search("quetzal");
      expect((await checkStore(store)).findings).toEqual([]);
      await strayRow(kind, directory, schema);
      expect((await checkStore(store)).findings).toMatchObject([{ sessionId: null, kind: "leftover" }]);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  },
);

/** A row of the log that belongs to no session. */
async function strayRow(kind: "sqlite" | "postgres", directory: string, schema: string): Promise<void> {
  if (kind === "sqlite") {
    const database = new Database(join(directory, "skein.db"));
    database.exec("INSERT INTO entries VALUES (999999, 0, 'stray', '{}', '{}')");
    database.close();
    return;
  }
  const sql = postgres(await postgresUrl(), { max: 1 });
  await sql.unsafe(`INSERT INTO ${schema}.entries VALUES (999999, 0, 'stray', '{}', '{}')`);
  await sql.end();
}
