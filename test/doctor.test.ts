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
  "has no findings for an intact %s store, and reports progress and counts",
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
  ["seq", "a missing entry", "a", `DELETE FROM entries WHERE session_key = ${A} AND seq = 40`],
  [
    "duplicate",
    "a duplicate id",
    "a",
    `UPDATE entries SET body = replace(body, '"m97"', '"m3"') WHERE session_key = ${A} AND seq = 97`,
  ],
  [
    "parent",
    "a missing parent",
    "a",
    `UPDATE entries SET body = replace(body, '"m79"', '"nowhere"') WHERE session_key = ${A} AND seq = 80`,
  ],
  [
    "target",
    "a label of a missing entry",
    "a",
    `UPDATE entries SET body = replace(body, '"m3"', '"nowhere"') WHERE session_key = ${A} AND id = 'label'`,
  ],
  [
    "head",
    "a head with a wrong number of messages",
    "a",
    `UPDATE entries SET state = json_set(state, '$.messages', 7) WHERE session_key = ${A} AND id = 'end'`,
  ],
  [
    "path",
    "a path summary with a wrong depth",
    "a",
    `UPDATE entries SET state = json_set(state, '$.depth', 3) WHERE session_key = ${A} AND id = 'm70'`,
  ],
  [
    "entry",
    "an id that is mapped to another position",
    "a",
    `UPDATE entry_ids SET seq = 9 WHERE session_key = ${A} AND id = 'm8'`,
  ],
  [
    "checkpoint",
    "a checkpoint beyond the end of the log",
    "a",
    "UPDATE checkpoints SET body = json_set(body, '$.version', 500)",
  ],
  [
    "checkpoint",
    "a checkpoint whose leaf is not a node",
    "a",
    "UPDATE checkpoints SET body = json_set(body, '$.leafId', 'label')",
  ],
  [
    "checkpoint",
    "a checkpoint whose leaf comes after its version",
    "a",
    "UPDATE checkpoints SET body = json_set(body, '$.version', 3)",
  ],
  ["listing", "a session under another user", "a", "UPDATE sessions SET user_id = 'eve' WHERE id = 'a'"],
  ["listing", "a session under another directory", "a", "UPDATE sessions SET cwd = '/else' WHERE id = 'a'"],
  ["listing", "a session under another status", "beta", "UPDATE sessions SET status = 'closed' WHERE id = 'beta'"],
  [
    "idle",
    "a session that is missing among the idle ones",
    "f",
    "UPDATE sessions SET status = 'closed' WHERE id = 'f'",
  ],
  ["listing", "a requested run that is not indexed", "beta", "UPDATE sessions SET runs = NULL WHERE id = 'beta'"],
  [
    "listing",
    "a run that is indexed and does not exist",
    "beta",
    "UPDATE sessions SET runs = runs | 4 WHERE id = 'beta'",
  ],
  ["listing", "a run that is indexed as started and is not", "a", "UPDATE sessions SET runs = 2 WHERE id = 'a'"],
  [
    "listing",
    "a run whose indexed due time is too early",
    "beta",
    "UPDATE sessions SET runs_due = '' WHERE id = 'beta'",
  ],
  ["listing", "a run without an indexed due time", "beta", "UPDATE sessions SET runs_due = NULL WHERE id = 'beta'"],
  ["listing", "a fork that is missing among the forks of its source", "f", "DELETE FROM session_parents"],
  [
    "search",
    "a text that is missing in the search index",
    "beta",
    "DELETE FROM search_index WHERE rowid & 4294967295 = 0",
  ],
  [
    "search",
    "a session that is missing in the search index",
    "beta",
    "DELETE FROM search_index WHERE rowid & 4294967295 = 4294967295",
  ],
  ["unreadable", "a row that is not JSON", "a", `UPDATE entries SET body = '{' WHERE session_key = ${A} AND seq = 5`],
];

describe("checkStore on an SQLite store", () => {
  test.for(damages)("reports as %s: %s", async ([kind, , sessionId, statement]) => {
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

describe("checkStore on a JSONL store", () => {
  const changes: readonly (readonly [FindingKind, string, string, (text: string) => string])[] = [
    ["unreadable", "a truncated line", "a", (text) => text.replace(/\{[^\n]*"m30"[^\n]*\n/, '{"type":"mess\n')],
    [
      "fork",
      "a fork with a different inherited entry",
      "f",
      (text) => text.replace("turn 7 about llamas", "turn 7 about cats"),
    ],
    ["fork", "a fork with too few inherited entries", "f", (text) => `${text.split("\n").slice(0, 3).join("\n")}\n`],
  ];
  test.for(changes)("reports as %s: %s", async ([kind, , sessionId, change]) => {
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

  test("reports a checkpoint that names another session than the one whose file holds it", async () => {
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

describe("checkStore on a store with wrong results", () => {
  const wrongMethods: readonly (readonly [FindingKind, string | null, Partial<SessionStore>])[] = [
    ["count", null, { count: async () => 7 }],
    ["idle", "f", { listExpired: async () => [] }],
    ["listing", "f", { list: async () => ({ items: [], next: null, damaged: [] }) }],
    ["entry", "a", { getEntry: async () => null }],
    ["search", "beta", { search: async () => [] }],
  ];
  test.for(wrongMethods)("reports as %s", async ([kind, sessionId, wrongMethod]) => {
    await using store = openMemoryStore();
    await fill(store);
    const { findings } = await checkStore(withMethods(store, wrongMethod));
    expect(findings).toContainEqual(expect.objectContaining({ kind, sessionId }));
  });
  test("reports a session that is listed with an outdated head", async () => {
    await using store = openMemoryStore();
    await fill(store);
    const before = await store.list();
    await store.append("a", [say("later")]);
    const { findings } = await checkStore(withMethods(store, { list: async () => before }));
    const message = expect.stringMatching(/behind its head/);
    expect(findings).toContainEqual({ kind: "listing", sessionId: "a", message });
  });
  function withMethods(store: SessionStore, methods: Partial<SessionStore>): SessionStore {
    return new Proxy(store, {
      get(target, name) {
        if (Object.hasOwn(methods, name)) return methods[name as keyof SessionStore];
        if (name === "capabilities") return { ...target.capabilities, search: "index" };
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
  }
});

test("has no findings while another handle appends, deletes and creates sessions", async () => {
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
      // Pause, because reading a log that grows all the time would never end.
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

test("has no findings if a new session has the id of a purged one", async () => {
  await using store = openMemoryStore();
  await fill(store);
  await store.delete("a");
  await store.purge("9999-01-01T00:00:00.000Z");
  await store.create(createHeader({ id: "a" }), { entries: Array.from({ length: 30 }, (_, i) => say(`new${i}`)) });
  expect((await checkStore(store)).findings).toEqual([]);
});

test("has no findings for a session that changes after every read of a listing", async () => {
  await using store = openMemoryStore();
  await fill(store);
  let reads = 0;
  const changing = new Proxy(store, {
    get(target, name) {
      if (name === "list")
        return async (query: Parameters<SessionStore["list"]>[0]) => {
          const page = await store.list(query);
          await store.append("beta", [{ type: "status", status: reads++ % 2 === 0 ? "closed" : "active" }]);
          return page;
        };
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  expect((await checkStore(changing)).findings).toEqual([]);
  expect(reads).toBeGreaterThan(10);
});

test("stops when its signal aborts, and rejects if the store does not answer", async () => {
  const store = openMemoryStore();
  await fill(store);
  await expect(checkStore(store, { signal: AbortSignal.abort(new Error("enough")) })).rejects.toThrow("enough");
  await store.close();
  await expect(checkStore(store)).rejects.toMatchObject({ code: "STORE_CLOSED" });
});

test.each(["sqlite", "postgres"] as const)(
  "finds no leftovers in %s after a searched fork is purged, and reports a row without a session",
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

/** Inserts an entry that belongs to no session. */
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
