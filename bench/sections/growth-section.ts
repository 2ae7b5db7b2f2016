import { createHeader, SessionTree } from "skein";
import { formatBytes, formatCount, formatMs } from "../format.ts";
import { messageOf } from "../message-of.ts";
import { type Contender, race } from "../race.ts";
import { atMost, type Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { settleFiles } from "../settle-files.ts";
import { medianMs, timeRatio, writtenBytes } from "../statistics.ts";
import { openStoreOf, type StoreKind } from "../store-kind.ts";

const section = "growth";
const GROWTH_MAX = 1.2;

/** What an append costs in a long session, against a short one in a store of its own. */
export const growthSection: Section = {
  name: section,
  async run(bench) {
    const rows: Row[] = [];
    for (const kind of ["memory", "jsonl", "sqlite"] as const) rows.push(...(await measureGrowth(bench, kind)));
    return rows;
  },
};

async function measureGrowth(bench: Bench, kind: StoreKind): Promise<Row[]> {
  const { entriesSmall, entriesLarge, growthAppends } = bench.sizes;
  await using large = await bench.fixtures.open(kind, entriesLarge);
  const smallFolder = await bench.fixtures.folder(`${kind}-small`);
  await using smallStore = await openStoreOf(kind, smallFolder);
  bench.progress(`growth: ${kind} at entry ${entriesSmall} and at entry ${entriesLarge}`);
  let smallTree: SessionTree;
  const small: Contender = {
    // A session of its own for each round, or it would not be short any more.
    async prepare() {
      smallTree = await SessionTree.on(smallStore, (await smallStore.create(createHeader())).header.id);
      for (let index = 0; index < entriesSmall; index++) await smallTree.appendMessage(messageOf(index));
    },
    run: () => appendMessages(smallTree, growthAppends),
    settle: () => settleFiles(kind, smallFolder),
  };
  const long: Contender = {
    run: () => appendMessages(large.tree, growthAppends),
    settle: () => settleFiles(kind, large.folder),
  };
  const samples = await race({ small, large: long }, { rounds: bench.sizes.rounds * 2, warmups: bench.sizes.warmups });
  const growth = timeRatio(samples.large, samples.small);
  const what = `${kind}, time of an append at entry ${formatCount(entriesLarge)}`;
  const time: Row = {
    section,
    what,
    measured: formatMs(medianMs(samples.large) / growthAppends),
    against: `${formatMs(medianMs(samples.small) / growthAppends)} at entry ${formatCount(entriesSmall)}`,
    ratio: growth,
    target: atMost(growth, GROWTH_MAX),
  };
  if (kind === "memory") return [time];
  const bytes = { small: writtenBytes(samples.small), large: writtenBytes(samples.large) };
  const appends = growthAppends * samples.large.length;
  return [
    time,
    {
      section,
      what: what.replace("time", "bytes"),
      measured: formatBytes(bytes.large / appends),
      against: `${formatBytes(bytes.small / appends)} at entry ${formatCount(entriesSmall)}`,
      ratio: bytes.large / bytes.small,
      target: atMost(bytes.large / bytes.small, GROWTH_MAX),
    },
  ];
}

async function appendMessages(tree: SessionTree, count: number): Promise<void> {
  for (let index = 0; index < count; index++) await tree.appendMessage(messageOf(index));
}
