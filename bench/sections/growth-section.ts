import { setTimeout as sleep } from "node:timers/promises";
import { createHeader, type SessionStore, SessionTree } from "skein";
import type { OpenFixture } from "../fixtures.ts";
import { formatBytes, formatCount, formatMs } from "../format.ts";
import { messageOf } from "../message-of.ts";
import { type Contender, race, type Sample } from "../race.ts";
import { atMost, type Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { PAUSE_MS, settleFiles } from "../settle-files.ts";
import { medianMs, timeRatio, writtenBytes } from "../statistics.ts";
import { openStoreOf, type StoreKind } from "../store-kind.ts";
import { measureVariables } from "./variables-rows.ts";

const section = "growth";
const GROWTH_MAX = 1.2;

/** The cost of an append in a long session, compared with a short one in a separate store. */
export const growthSection: Section = {
  name: section,
  async run(bench) {
    const rows: Row[] = [];
    const kinds = ["memory", "jsonl", "sqlite"] as const;
    for (const kind of kinds) rows.push(...(await measureGrowth(bench, kind)));
    for (const kind of kinds) rows.push(...(await measureVariables(bench, kind)));
    return rows;
  },
};

async function measureGrowth(bench: Bench, kind: StoreKind): Promise<Row[]> {
  const { entriesSmall, entriesLarge } = bench.sizes;
  await using large = await bench.fixtures.open(kind, entriesLarge);
  const folder = await bench.fixtures.folder(`${kind}-small`);
  await using smallStore = await openStoreOf(kind, folder);
  const small = { store: smallStore, folder };
  bench.progress(`growth: ${kind} at entry ${entriesSmall} and at entry ${entriesLarge}`);
  const rows = await appendInSeries(bench, kind, small, large);
  return kind === "memory" ? rows : [...rows, await appendAfterPause(bench, kind, small, large)];
}

interface SmallStore {
  readonly store: SessionStore;
  readonly folder: string;
}

async function appendInSeries(bench: Bench, kind: StoreKind, small: SmallStore, large: OpenFixture): Promise<Row[]> {
  const { growthAppends, rounds, warmups } = bench.sizes;
  let tree: SessionTree;
  const short: Contender = {
    // A separate session for each round, as it would not stay short otherwise.
    async prepare() {
      tree = await shortSession(bench, small.store);
    },
    warmUp: () => appendMessages(tree, 1),
    run: () => appendMessages(tree, growthAppends),
    settle: () => settleFiles(kind, small.folder),
  };
  const long: Contender = {
    warmUp: () => appendMessages(large.tree, 1),
    run: () => appendMessages(large.tree, growthAppends),
    settle: () => settleFiles(kind, large.folder),
  };
  const samples = await race({ small: short, large: long }, { rounds, warmups });
  const time = timeRow(bench, `${kind}, time of an append`, samples, growthAppends);
  if (kind === "memory") return [time];
  const appends = growthAppends * samples.large.length;
  const bytes = { small: writtenBytes(samples.small) / appends, large: writtenBytes(samples.large) / appends };
  const values = { measured: formatBytes(bytes.large), against: formatBytes(bytes.small) };
  return [time, growthRow(bench, `${kind}, bytes of an append`, values, bytes.large / bytes.small)];
}

/** The rhythm of an agent: by the next append, the store has released its lock and closed its file. */
async function appendAfterPause(bench: Bench, kind: StoreKind, small: SmallStore, large: OpenFixture): Promise<Row> {
  const { rounds, warmups } = bench.sizes;
  const contender = (tree: SessionTree): Contender => ({
    prepare: () => sleep(PAUSE_MS),
    run: () => appendMessages(tree, 1),
  });
  const samples = await race(
    { small: contender(await shortSession(bench, small.store)), large: contender(large.tree) },
    { rounds, warmups },
  );
  return timeRow(bench, `${kind}, time of an append after a pause of ${PAUSE_MS} ms,`, samples, 1);
}

async function shortSession(bench: Bench, store: SessionStore): Promise<SessionTree> {
  const tree = await SessionTree.on(store, (await store.create(createHeader())).header.id);
  await appendMessages(tree, bench.sizes.entriesSmall);
  return tree;
}

async function appendMessages(tree: SessionTree, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await tree.appendMessage(messageOf(index));
}

function timeRow(
  bench: Bench,
  what: string,
  samples: Readonly<Record<"small" | "large", Sample[]>>,
  appends: number,
): Row {
  const values = {
    measured: formatMs(medianMs(samples.large) / appends),
    against: formatMs(medianMs(samples.small) / appends),
  };
  return growthRow(bench, what, values, timeRatio(samples.large, samples.small));
}

function growthRow(bench: Bench, what: string, values: { measured: string; against: string }, ratio: number): Row {
  const { entriesSmall, entriesLarge } = bench.sizes;
  return {
    section,
    what: `${what} at entry ${formatCount(entriesLarge)}`,
    measured: values.measured,
    against: `${values.against} at entry ${formatCount(entriesSmall)}`,
    ratio,
    target: atMost(ratio, GROWTH_MAX),
  };
}
