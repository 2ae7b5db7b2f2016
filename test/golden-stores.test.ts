import { randomUUID } from "node:crypto";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import postgres from "postgres";
import { createClient } from "redis";
import { describe, expect, onTestFinished, test } from "vitest";
import { createAgent } from "../src/agent/agent.ts";
import { scripted } from "../src/models/scripted.ts";
import type { Entry } from "../src/session/log/entry.ts";
import type { PathSummary, SessionHead } from "../src/session/log/fold.ts";
import { createHeader } from "../src/session/log/header.ts";
import { type OpenRun, openRunsAsStored, type RunsCondition } from "../src/session/log/open-runs.ts";
import type { Settings } from "../src/session/log/settings.ts";
import type { SessionStore } from "../src/session/store.ts";
import { checkStore } from "../src/stores/doctor/check-store.ts";
import { openJsonlStore } from "../src/stores/jsonl/index.ts";
import { openPostgresStore } from "../src/stores/postgres/index.ts";
import { openRedisStore } from "../src/stores/redis/index.ts";
import { openSqliteStore } from "../src/stores/sqlite/index.ts";
import { checkHeadIsFold } from "../src/testing/index.ts";
import { postgresUrl } from "./postgres-server.ts";
import { toolOf } from "./sample-run.ts";
import { redisPrefix, redisSkip, redisUrl } from "./redis-server.ts";

/** Without the setups of agents, which format 3 has added. */
type Whole<T extends PathSummary> = Omit<T, "settings"> & { readonly settings: Omit<Settings, "setups"> };

/** The content of a session as an earlier version returned it. In version 1, settings were part of every path. */
interface SessionContent {
  readonly head: Omit<SessionHead, "path" | "updatedAt" | "openRuns"> & {
    readonly path: Whole<PathSummary>;
    readonly openRuns: SessionHead["openRuns"] | readonly string[];
  };
  readonly entries: readonly Entry[];
  readonly paths: Readonly<Record<string, Whole<PathSummary>>>;
}

const golden = (name: string): string => fileURLToPath(new URL(`golden/${name}`, import.meta.url));
const read = <T>(name: string): T => JSON.parse(readFileSync(golden(name), "utf8")) as T;

function directory(): string {
  const path = mkdtempSync(join(tmpdir(), "skein-golden-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Opens a copy of the data that a version has stored, in each kind of store. */
const kindsOf = (version: string): Readonly<Record<string, () => Promise<SessionStore>>> => ({
  async jsonl() {
    const path = directory();
    cpSync(golden(`${version}/jsonl`), path, { recursive: true });
    return openJsonlStore({ directory: path });
  },
  async sqlite() {
    const path = join(directory(), "skein.db");
    cpSync(golden(`${version}/store.db`), path);
    return openSqliteStore({ path });
  },
  async postgres() {
    const { ddl, rows } = read<{ ddl: string; rows: Record<string, object[]> }>(`${version}/postgres.json`);
    const schema = `${version}_${randomUUID().replaceAll("-", "")}`;
    const sql = postgres(await postgresUrl(), { max: 1, onnotice: () => {} });
    await sql.unsafe(`CREATE SCHEMA ${schema}; CREATE TABLE ${schema}.skein_schema (version integer NOT NULL);`);
    await sql.unsafe(ddl.replaceAll("$.", `${schema}.`));
    for (const table of ["skein_schema", "sessions", "heads", "entries", "session_parents", "checkpoints"]) {
      await sql.unsafe(
        `INSERT INTO ${schema}.${table} OVERRIDING SYSTEM VALUE
         SELECT * FROM json_populate_recordset(NULL::${schema}.${table}, $1::text::json)`,
        [JSON.stringify(rows[table])],
      );
    }
    // The rows do not contain the next value of the identity column.
    await sql.unsafe(`ALTER TABLE ${schema}.sessions ALTER COLUMN key RESTART WITH 100`);
    await sql.end();
    return openPostgresStore({ url: await postgresUrl(), schema, connectionsMax: 2 });
  },
  ...(redisSkip === null && {
    async redis() {
      const prefix = `${redisPrefix}:${randomUUID()}`;
      const client = createClient({ url: await redisUrl() });
      await client.connect();
      for (const [name = "", key = "", ...rest] of read<string[][]>(`${version}/redis.json`)) {
        const own = key.replace(/^skein:/, `${prefix}:`).replace("{skein}", `{${prefix}}`);
        await client.sendCommand([name, own, ...rest]);
      }
      client.destroy();
      return openRedisStore({ url: await redisUrl(), prefix });
    },
  }),
});

/** Each version, with its sessions that have a requested run and those that have a parked run. */
const versions = [
  { version: "v1", requested: [], parked: [] },
  { version: "v2", requested: ["story"], parked: ["plain"] },
];
const fixtures = versions.flatMap(({ version, ...runs }) =>
  Object.entries(kindsOf(version)).map(([kind, open]) => ({ version, kind, open, ...runs })),
);

const startedRun = (runId: string): OpenRun => ({ runId, state: "started" });

async function wholeOf(store: SessionStore, id: string, path: PathSummary): Promise<Whole<PathSummary>> {
  const { setups, ...settings } = await store.settings(id, path);
  expect(setups).toEqual({});
  return { ...path, settings };
}

async function contentOf(store: SessionStore, id: string): Promise<SessionContent> {
  const { updatedAt: _storesClock, ...head } = (await store.head(id)) as SessionHead;
  const entries: Entry[] = [];
  for await (const entry of store.read(id)) entries.push(entry);
  const paths: Record<string, Whole<PathSummary>> = {};
  for (const entry of entries) {
    const path = await store.path(id, entry.id);
    if (path !== null) paths[entry.id] = await wholeOf(store, id, path);
  }
  return { head: { ...head, path: await wholeOf(store, id, head.path) }, entries, paths };
}

describe.for(fixtures)("a $kind store of $version", ({ version, kind, open, requested, parked }) => {
  test("returns the same content of every session as the version that has stored it", async () => {
    await using store = await open();
    for (const [id, session] of Object.entries(read<Record<string, SessionContent>>(`${version}/store.json`))) {
      const now = await contentOf(store, id);
      // In version 1 the open runs were the ids of started ones.
      const openRuns = session.head.openRuns.map((run): OpenRun => (typeof run === "string" ? startedRun(run) : run));
      // In a JSONL store a fork is a copy of the lines, so its `modifiedAt` differs.
      const times = kind === "jsonl" ? { modifiedAt: now.head.modifiedAt } : {};
      const head = { ...now.head, openRuns: openRunsAsStored(now.head.openRuns as readonly OpenRun[], openRuns) };
      expect({ ...now, head }).toEqual({ ...session, head: { ...session.head, ...times, openRuns } });
    }
  });

  test("lists the open runs, and accepts their end and new requests", async () => {
    await using store = await open();
    const found = async (runs: RunsCondition): Promise<string[]> =>
      (await store.list({ runs })).items.map(({ header }) => header.id);
    expect([await found("interrupted"), await found("running")]).toEqual([["story"], []]);
    expect([await found("requested"), await found("asking")]).toEqual([requested, parked]);
    const request = { type: "run_request", id: "run:next", runId: "next", agent: "a", input: "hi" } as const;
    await store.append("story", [{ type: "run", runId: "r1", phase: "failed" }, request]);
    expect([await found("interrupted"), await found("requested")]).toEqual([[], ["story"]]);
    await checkHeadIsFold(store, "story");
    expect((await checkStore(store)).findings).toEqual([]);
  });

  test("runs an agent, stores its setup with the keys in their order, and names it in the answer", async () => {
    await using store = await open();
    const parameters = { type: "object", properties: { zone: {}, a: {} }, additionalProperties: true };
    const look = toolOf("look", undefined, { schema: { name: "look", description: "Looks.", parameters } });
    const agent = createAgent({ name: "clerk", prompt: "Be brief.", model: scripted(["Yes."]), tools: [look] });
    await agent.run("Go on.", { persist: { store, sessionId: "fork" }, builtInTools: false });
    const { setups } = await store.settings("fork", ((await store.head("fork")) as SessionHead).path);
    const setup = await store.getEntry("fork", setups["clerk"] as string);
    expect(setup?.type === "setup" && JSON.stringify(setup.tools?.[0]?.parameters)).toBe(JSON.stringify(parameters));
    const answer = await store.getEntry("fork", ((await store.head("fork")) as SessionHead).leafId as string);
    expect(answer).toMatchObject({ message: { content: "Yes." }, setup: setup?.id });
    await checkHeadIsFold(store, "fork");
    expect((await checkStore(store)).findings).toEqual([]);
  });

  test("accepts appends on every branch and in forks, and checkStore has no findings afterwards", async () => {
    await using store = await open();
    for (const at of ["v1", "m2", "w8", "w3"]) {
      await store.append("story", [{ type: "leaf", targetId: at }]);
      const before = await store.settings("story", ((await store.head("story")) as SessionHead).path);
      for (let i = 0; i < 5; i++)
        await store.append("story", [{ type: "variables", set: { [`new${i}`]: at, last: i }, unset: ["n"] }]);
      const { n: _unset, ...kept } = before.variables;
      const { path } = (await store.head("story")) as SessionHead;
      expect((await store.settings("story", path)).variables).toEqual({
        ...kept,
        ...{ new0: at, new1: at, new2: at, new3: at, new4: at, last: 4 },
      });
    }
    await store.fork("story", createHeader({ id: "later" }), { at: "w5" });
    await store.append("later", [{ type: "variables", set: { later: true }, unset: ["k4"] }]);
    for (const id of ["story", "fork", "plain", "later"]) await checkHeadIsFold(store, id);
    expect((await checkStore(store)).findings).toEqual([]);
  });
});
