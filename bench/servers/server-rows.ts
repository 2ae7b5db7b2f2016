import { setTimeout as sleep } from "node:timers/promises";
import { createHeader, type SessionStore, SessionTree } from "skein";
import { formatCount, formatMs } from "../format.ts";
import { messageOf } from "../message-of.ts";
import { type Contender, race, type Sample } from "../race.ts";
import { atLeast, atMost, type Row } from "../row.ts";
import type { Bench } from "../section.ts";
import { medianMs, timeRatio } from "../statistics.ts";
import type { BareClient, BareRow, BenchServer } from "./bench-server.ts";
import { fillListing, fillSession, userAt } from "./fill-store.ts";

const SPEED_MIN = { postgres: 0.6, redis: 0.5 } as const;
const SPEED_AT_ONCE_MIN = { postgres: 0.5, redis: 0.4 } as const;
const OPEN_MAX = 2;
const FORK_MAX = 2;
const LIST_MAX = 1.5;
const GROWTH_MAX = 1.2;
const LIST_LIMIT = 50;
/** A session without writes for this long counts as settled in a listing. */
const QUIET_MS = 1500;

/** Sequential appends, compared with a bare client that writes the same bytes. */
export async function appendOneByOne(bench: Bench, server: BenchServer): Promise<Row[]> {
  const { appends } = bench.sizes;
  await using store = await server.openStore("append");
  const sessionId = await newSession(store);
  const rows = await bareRows(store, sessionId, appends);
  bench.progress(`${server.kind}: one append at a time`);
  const bares = server.bares.map((bare, index): [string, Contender] => [`bare${index}`, writer(bare, rows)]);
  const ours: Contender = {
    warmUp: () => appendMessages(store, sessionId, 1),
    run: () => appendMessages(store, sessionId, appends),
  };
  const samples = await race(Object.fromEntries([["store", ours], ...bares]), bench.sizes);
  return speedRows(server, "one append at a time", samples, { count: appends, limit: SPEED_MIN[server.kind] });
}

/** Parallel appends to many sessions, compared with as many parallel bare writes. */
export async function appendAtOnce(bench: Bench, server: BenchServer): Promise<Row[]> {
  const { sessionsAtOnce, appendsAtOnce } = bench.sizes;
  await using store = await server.openStore("append");
  const sessionIds = await Promise.all(Array.from({ length: sessionsAtOnce }, () => newSession(store)));
  const rows = await bareRows(store, sessionIds[0] as string, appendsAtOnce);
  bench.progress(`${server.kind}: ${sessionsAtOnce} appends at once`);
  const together = (run: (session: number) => Promise<void>): Contender => ({
    run: async () => void (await Promise.all(sessionIds.map((_, session) => run(session)))),
  });
  const bares = server.bares.map((bare, index): [string, Contender] => [
    `bare${index}`,
    together((session) => writeAll(bare, rows, session)),
  ]);
  const all = together((session) => appendMessages(store, sessionIds[session] as string, appendsAtOnce));
  const samples = await race(Object.fromEntries([["store", all], ...bares]), bench.sizes);
  const what = `${formatCount(sessionsAtOnce)} sessions appended to at once, each append`;
  return speedRows(server, what, samples, {
    count: sessionsAtOnce * appendsAtOnce,
    limit: SPEED_AT_ONCE_MIN[server.kind],
  });
}

/** The cost of length: appending to, opening and forking a long session, compared with a short one. */
export async function measureLength(bench: Bench, server: BenchServer): Promise<Row[]> {
  const { entriesSmall, entriesMedium, entriesLarge, entriesKept } = bench.sizes;
  await using store = await server.openStore("length");
  bench.progress(`${server.kind}: making sessions of up to ${entriesLarge} entries`);
  const small = await fillSession(store, entriesSmall, entriesKept);
  const medium = await fillSession(store, entriesMedium, entriesKept);
  const large = await fillSession(store, entriesLarge, entriesKept);
  bench.progress(`${server.kind}: open, fork and append at entry ${entriesLarge}`);
  return [
    await openRow(bench, server, { medium, large }),
    await forkRow(bench, server, store, { small, large }),
    await growthRow(bench, server, store, large),
  ];
}

/** The first page of one user's sessions, among many sessions and among few. */
export async function listByUser(bench: Bench, server: BenchServer): Promise<Row> {
  const { sessions, sessionsMany, sessionsOfUser, rounds, warmups } = bench.sizes;
  await using few = await server.openStore("few");
  await using many = await server.openStore("many");
  bench.progress(`${server.kind}: making ${sessions} and ${sessionsMany} sessions`);
  await fillListing(few, sessions, sessionsOfUser);
  await fillListing(many, sessionsMany, sessionsOfUser);
  await sleep(QUIET_MS);
  const lister = (store: SessionStore): Contender => ({
    async run(round) {
      // The same users on both sides, so that the caches of both stores have the same number of heads.
      const user = (round + warmups) % Math.floor(sessions / sessionsOfUser);
      const { items } = await store.list({ userId: userAt(user), limit: LIST_LIMIT });
      const expected = Math.min(LIST_LIMIT, sessionsOfUser);
      if (items.length !== expected) throw new Error(`The page has ${items.length} sessions instead of ${expected}.`);
    },
  });
  bench.progress(`${server.kind}: list by user among ${sessionsMany} sessions`);
  const samples = await race({ few: lister(few), many: lister(many) }, { rounds, warmups });
  const ratio = timeRatio(samples.many, samples.few);
  return {
    section: server.kind,
    what: `list of one user's sessions, first page, among ${formatCount(sessionsMany)}`,
    measured: formatMs(medianMs(samples.many)),
    against: `${formatMs(medianMs(samples.few))} among ${formatCount(sessions)}`,
    ratio,
    target: atMost(ratio, LIST_MAX),
  };
}

async function openRow(
  bench: Bench,
  server: BenchServer,
  ids: { readonly medium: string; readonly large: string },
): Promise<Row> {
  const { entriesMedium, entriesLarge, opens, warmups } = bench.sizes;
  const opener = (sessionId: string): Contender => {
    let store: SessionStore;
    return {
      // A separate store for each round has an empty cache; the time to connect is not measured.
      async prepare() {
        store = await server.openStore("length");
        await store.ping();
      },
      run: async () => void (await (await SessionTree.on(store, sessionId)).buildContext()),
      finish: () => store.close(),
    };
  };
  const samples = await race({ medium: opener(ids.medium), large: opener(ids.large) }, { rounds: opens, warmups });
  const ratio = timeRatio(samples.large, samples.medium);
  return {
    section: server.kind,
    what: `open + context of ${formatCount(entriesLarge)} entries`,
    measured: formatMs(medianMs(samples.large)),
    against: `${formatMs(medianMs(samples.medium))} with ${formatCount(entriesMedium)} entries`,
    ratio,
    target: atMost(ratio, OPEN_MAX),
  };
}

async function forkRow(
  bench: Bench,
  server: BenchServer,
  store: SessionStore,
  ids: { readonly small: string; readonly large: string },
): Promise<Row> {
  const { entriesSmall, entriesLarge, forks } = bench.sizes;
  const forker = (sessionId: string): Contender => ({
    async run() {
      for (let index = 0; index < forks; index++) await store.fork(sessionId, createHeader());
    },
  });
  const samples = await race({ small: forker(ids.small), large: forker(ids.large) }, bench.sizes);
  const ratio = timeRatio(samples.large, samples.small);
  return {
    section: server.kind,
    what: `fork of ${formatCount(entriesLarge)} entries`,
    measured: formatMs(medianMs(samples.large) / forks),
    against: `${formatMs(medianMs(samples.small) / forks)} of ${formatCount(entriesSmall)} entries`,
    ratio,
    target: atMost(ratio, FORK_MAX),
  };
}

async function growthRow(bench: Bench, server: BenchServer, store: SessionStore, large: string): Promise<Row> {
  const { entriesSmall, entriesLarge, entriesKept, growthAppends } = bench.sizes;
  let short = "";
  const appender = (idOf: () => string): Pick<Contender, "warmUp" | "run"> => ({
    warmUp: () => appendMessages(store, idOf(), 1),
    run: () => appendMessages(store, idOf(), growthAppends),
  });
  const samples = await race(
    {
      small: {
        // A separate session for each round, as it would not stay short otherwise.
        async prepare() {
          short = await fillSession(store, entriesSmall, entriesKept);
        },
        ...appender(() => short),
      },
      large: appender(() => large),
    },
    bench.sizes,
  );
  const ratio = timeRatio(samples.large, samples.small);
  return {
    section: server.kind,
    what: `time of an append at entry ${formatCount(entriesLarge)}`,
    measured: formatMs(medianMs(samples.large) / growthAppends),
    against: `${formatMs(medianMs(samples.small) / growthAppends)} at entry ${formatCount(entriesSmall)}`,
    ratio,
    target: atMost(ratio, GROWTH_MAX),
  };
}

function speedRows(
  { kind, bares }: BenchServer,
  what: string,
  samples: Readonly<Record<string, Sample[]>>,
  { count, limit }: { readonly count: number; readonly limit: number },
): Row[] {
  const store = samples["store"] as Sample[];
  return bares.map(({ label }, index) => {
    const bare = samples[`bare${index}`] as Sample[];
    const speed = timeRatio(bare, store);
    return {
      section: kind,
      what,
      measured: `${formatMs(medianMs(store) / count)} each`,
      against: `${formatMs(medianMs(bare) / count)}, ${label}`,
      ratio: speed,
      ...(index === 0 ? { target: atLeast(speed, limit) } : {}),
    };
  });
}

async function newSession(store: SessionStore): Promise<string> {
  const { header } = await store.create(createHeader());
  await appendMessages(store, header.id, 1);
  return header.id;
}

async function appendMessages(store: SessionStore, sessionId: string, count: number): Promise<void> {
  for (let index = 0; index < count; index++)
    await store.append(sessionId, [{ type: "message", message: messageOf(index) }]);
}

/** The rows of a bare client: the bytes of entries that the store has just written. */
async function bareRows(store: SessionStore, sessionId: string, count: number): Promise<BareRow[]> {
  await appendMessages(store, sessionId, count);
  const rows: BareRow[] = [];
  for await (const entry of store.read(sessionId, { reverse: true, limit: count }))
    rows.push({ session: 0, id: entry.id, body: JSON.stringify(entry) });
  return rows;
}

function writer(bare: BareClient, rows: readonly BareRow[]): Contender {
  return { run: () => writeAll(bare, rows, 0) };
}

async function writeAll(bare: BareClient, rows: readonly BareRow[], session: number): Promise<void> {
  for (const { id, body } of rows) await bare.write({ session, id, body });
}
