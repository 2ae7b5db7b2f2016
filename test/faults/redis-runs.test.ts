import type { Redis } from "ioredis";
import { expect } from "vitest";
import type { EntryDraft } from "../../src/session/log/entry.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionQuery, SessionStore } from "../../src/session/store.ts";
import { KeyNames } from "../../src/stores/redis/key-names.ts";
import { CURRENT_LEASE } from "../../src/stores/redis/session-scripts.ts";
import { newPrefix, openClient, openStore, redisTest } from "./redis-support.ts";
import { until } from "./store-support.ts";

const PARKED_COUNT = 120;
const LATER = "2040-01-01T00:00:00.000Z";
const AFTER = "2041-01-01T00:00:00.000Z";

const started: EntryDraft = { type: "run", runId: "r", phase: "started" };
const request: EntryDraft = { type: "run_request", id: "run:r", runId: "r", agent: "a", input: "hi" };

function parked(more: { readonly expiresAt?: string } = {}): readonly EntryDraft[] {
  const questions = [{ callId: "c", question: "q" }];
  const asks: EntryDraft = { type: "approval", id: "q", runId: "r", callId: "c" };
  return [started, asks, { type: "run_parked", runId: "r", questions, ...more }];
}

redisTest("reads only the sessions that it shows, however many others have open runs", async () => {
  const { store, touched } = await setUp();
  expect(await touched({ runs: "requested" })).toEqual(["requested"]);
  expect(await touched({ runs: "requested", userId: "ann" })).toEqual(["requested"]);
  expect(await touched({ runs: "requested", userId: "bob" })).toEqual([]);
  expect(await touched({ runs: "interrupted" })).toEqual(["expiring-run", "started"]);
  expect(await touched({ dueBefore: LATER })).toEqual(["requested"]);
  expect(await touched({ dueBefore: AFTER })).toEqual(["expiring", "requested"]);
  expect(await touched({ dueBefore: AFTER, runs: "asking" })).toEqual(["expiring", "requested"]);
  expect((await touched({ runs: "asking", limit: 20 })).length).toBeLessThan(60);
  expect(await store.count({ runs: "asking" })).toBe(PARKED_COUNT + 1);
  expect(await store.count({ dueBefore: AFTER })).toBe(2);
  expect(await store.count({ runs: "asking", dueBefore: AFTER })).toBe(1);
});

redisTest("asks for leases only of sessions in which a run has started", async () => {
  const { store, asked } = await setUp();
  const lease = await store.lease("started", "r", 60_000);
  expect(await asked({ runs: "running" })).toEqual({ ids: ["started"], leases: ["expiring-run", "started"] });
  expect(await asked({ runs: "asking" })).toMatchObject({ leases: [] });
  expect([await store.count({ runs: "running" }), await store.count({ runs: "interrupted" })]).toEqual([1, 1]);
  await lease.release();
  expect((await asked({ runs: "running" })).ids).toEqual([]);
});

redisTest("pages through what is due in the order of any listing", async () => {
  const { store } = await setUp();
  for (let index = 0; index < 7; index++) {
    const notBefore = `203${index}-01-01T00:00:00.000Z`;
    await store.create(createHeader({ id: `due-${index}` }), { entries: [{ ...request, notBefore }] });
  }
  const all = (await store.list({ dueBefore: AFTER })).items.map(({ header }) => header.id);
  expect(all.toSorted()).toEqual(
    ["expiring", "requested", ...Array.from({ length: 7 }, (_, i) => `due-${i}`)].toSorted(),
  );
  expect(all).toEqual((await listAll(store)).filter((id) => all.includes(id)));
  expect(await listAll(store, { dueBefore: AFTER, limit: 2 })).toEqual(all);
});

redisTest("takes every place of a session's runs away with them", async () => {
  const { store, client, names, settle } = await setUp();
  const parts = ["runs-requested", "runs-started", "runs-parked", "due"].map((part) => names.index(part));
  for (const { header } of (await store.list({ limit: 1000 })).items) await store.delete(header.id);
  await settle();
  expect(await Promise.all(parts.map((key) => client.zcard(key)))).toEqual([0, 0, 0, 0]);
  expect(await client.keys(`${names.index("user-runs-requested")}*`)).toEqual([]);
});

redisTest("finds what the first layout left open, of which its index says nothing", async () => {
  const { store, client, names, prefix } = await setUp();
  const record = names.index("records");
  const { runs: _, ...rest } = JSON.parse((await client.hget(record, "started")) as string);
  await client.hset(record, "started", JSON.stringify(rest));
  await client.del(names.index("runs-started"), names.index("user-runs-started", "bob"));
  expect(await listAll(store, { runs: "interrupted" })).toEqual([]);
  await client.set(names.index("layout"), "1");
  const later = await openStore({ client, prefix });
  expect(await listAll(later, { runs: "interrupted", userId: "bob" })).toEqual(["started"]);
  expect((await later.head("started"))?.openRuns).toEqual([{ runId: "r", state: "started" }]);
  expect(Number(await client.get(names.index("layout")))).toBeGreaterThan(1);
});

async function listAll(store: SessionStore, query: SessionQuery = {}): Promise<string[]> {
  const ids: string[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await store.list({ ...query, ...(cursor === undefined ? {} : { cursor }) });
    ids.push(...page.items.map(({ header }) => header.id));
    cursor = page.next;
  }
  return ids;
}

interface SetUp {
  readonly store: SessionStore;
  readonly client: Redis;
  readonly names: KeyNames;
  readonly prefix: string;
  settle(): Promise<void>;
  /** The sessions that a listing read, or their records in the index, by a handle that knows none of them. */
  touched(query: SessionQuery): Promise<string[]>;
  /** The result of a listing, and which leases it read. */
  asked(query: SessionQuery): Promise<{ readonly ids: string[]; readonly leases: string[] }>;
}

async function setUp(): Promise<SetUp> {
  const [prefix, client] = [newPrefix(), await openClient()];
  const names = new KeyNames(prefix);
  const store = await openStore({ client, prefix });
  const logs: Readonly<Record<string, readonly EntryDraft[]>> = {
    requested: [request],
    started: [started],
    "expiring-run": [started],
    expiring: parked({ expiresAt: LATER }),
    nothing: [started, { type: "run", runId: "r", phase: "finished" }],
    ...Object.fromEntries(Array.from({ length: PARKED_COUNT }, (_, index) => [`parked-${index}`, parked()])),
  };
  for (const [id, entries] of Object.entries(logs)) {
    const userId = id === "requested" || id.startsWith("parked-") ? "ann" : "bob";
    await store.create(createHeader({ id, userId }), { entries });
  }
  const settle = (): Promise<void> =>
    until(async () => {
      await store.list();
      return (await client.zcard(names.index("unsettled"))) === 0;
    }, "a settled index");
  await settle();
  const spy = async (query: SessionQuery): Promise<{ ids: string[]; keys: string[]; leases: string[] }> => {
    const [keys, leases]: [string[], string[]] = [[], []];
    const call = (command: string, ...args: string[]): Promise<unknown> => {
      keys.push(...args.filter((arg) => arg.startsWith(`${prefix}:`)));
      if (args[0] === CURRENT_LEASE.sha) leases.push(args[2] as string);
      if (args[0] === names.index("records")) keys.push(...args.slice(1).map((id) => names.session(id)));
      return client.call(command, ...args);
    };
    const other = await openStore({ client: { call, duplicate: () => client.duplicate() }, prefix });
    const { items } = await other.list(query);
    return { ids: items.map(({ header }) => header.id), keys, leases };
  };
  const idsIn = (keys: readonly string[]): string[] =>
    [...new Set(keys.flatMap((key) => /:[se]:\{([^}]*)\}/.exec(key)?.[1] ?? []))].toSorted();
  return {
    ...{ store, client, names, prefix, settle },
    touched: async (query) => idsIn((await spy(query)).keys),
    asked: async (query) => {
      const { ids, leases } = await spy(query);
      return { ids, leases: idsIn(leases) };
    },
  };
}
