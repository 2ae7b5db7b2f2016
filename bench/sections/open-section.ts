import { SessionTree } from "skein";
import { directoryBytes } from "../directory-bytes.ts";
import type { StoredFixture } from "../fixtures.ts";
import { formatBytes, formatCount, formatMs } from "../format.ts";
import { type Contender, race, type Sample } from "../race.ts";
import { atMost, below, type Row } from "../row.ts";
import { runInChild } from "../run-in-child.ts";
import type { Bench, Section } from "../section.ts";
import { bestMs, median, medianMs, timeRatio } from "../statistics.ts";
import { type DurableKind, openStoreOf } from "../store-kind.ts";

const section = "open";
const JSONL_MS_MAX = 30;

/** Opening a session and building its context, if a compaction keeps the end of it. */
export const openSection: Section = {
  name: section,
  async run(bench) {
    const rows: Row[] = [];
    for (const kind of ["jsonl", "sqlite"] as const) rows.push(...(await measureOpening(bench, kind)));
    return rows;
  },
};

async function measureOpening(bench: Bench, kind: DurableKind): Promise<Row[]> {
  const { entriesMedium, entriesLarge, opens, warmups } = bench.sizes;
  const medium = await bench.fixtures.shared(kind, entriesMedium);
  const large = await bench.fixtures.shared(kind, entriesLarge);
  bench.progress(`open: ${kind} with ${entriesMedium} and with ${entriesLarge} entries`);
  const samples = await race({ medium: opener(kind, medium), large: opener(kind, large) }, { rounds: opens, warmups });
  const what = `${kind}, open + context of ${formatCount(entriesLarge)} entries`;
  const ratio = timeRatio(samples.large, samples.medium);
  const timeMs = medianMs(samples.large);
  return [
    {
      section,
      what,
      measured: `${formatMs(timeMs)}, best round ${formatMs(bestMs(samples.large))}`,
      against: `${formatMs(medianMs(samples.medium))} with ${formatCount(entriesMedium)} entries`,
      ratio,
      target: kind === "jsonl" ? below(timeMs, JSONL_MS_MAX, "ms") : atMost(ratio, 1.5),
    },
    {
      section,
      what: `${what}, bytes read`,
      measured: formatBytes(readBytes(samples.large)),
      against: `${formatBytes(await directoryBytes(large.folder))} on disk`,
      ratio: readBytes(samples.large) / (await directoryBytes(large.folder)),
    },
    await openFirst(bench, kind, { medium, large }),
  ];
}

/** The same as the first action of a process, with nothing compiled yet. */
async function openFirst(
  bench: Bench,
  kind: DurableKind,
  fixtures: { readonly medium: StoredFixture; readonly large: StoredFixture },
): Promise<Row> {
  const { entriesMedium, entriesLarge, children } = bench.sizes;
  const times = { medium: [] as number[], large: [] as number[] };
  for (let round = 0; round < children; round++) {
    for (const size of ["medium", "large"] as const) {
      times[size].push((await runInChild("open", { kind, ...fixtures[size] })).timeMs);
    }
  }
  return {
    section,
    what: `${kind}, open + context of ${formatCount(entriesLarge)} entries, first call of a process`,
    measured: formatMs(median(times.large)),
    against: `${formatMs(median(times.medium))} with ${formatCount(entriesMedium)} entries`,
    ratio: median(times.large) / median(times.medium),
  };
}

function opener(kind: DurableKind, { folder, sessionId }: StoredFixture): Contender {
  let close: () => Promise<void>;
  return {
    async run() {
      const store = await openStoreOf(kind, folder);
      const tree = await SessionTree.on(store, sessionId);
      await tree.buildContext();
      close = () => store.close();
    },
    finish: () => close(),
  };
}

function readBytes(samples: readonly Sample[]): number {
  return median(samples.map((sample) => sample.readBytes));
}
