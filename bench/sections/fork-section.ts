import { createHeader } from "skein";
import { directoryBytes } from "../directory-bytes.ts";
import { type OpenFixture, openFixture } from "../fixtures.ts";
import { formatBytes, formatCount, formatMs } from "../format.ts";
import { type Contender, race } from "../race.ts";
import { atMost, type Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { settleFiles } from "../settle-files.ts";
import { medianMs, timeRatio } from "../statistics.ts";
import type { DurableKind, StoreKind } from "../store-kind.ts";

const section = "fork";
const TIME_MAX = 2;
const BYTES_MAX = 2000;
const COPIES_MAX = 5;

/** Forking a session, and moving its leaf, at different lengths. */
export const forkSection: Section = {
  name: section,
  async run(bench) {
    const rows: Row[] = [];
    for (const kind of ["memory", "sqlite", "jsonl"] as const) rows.push(await timeOf(bench, kind, forking(kind)));
    for (const kind of ["sqlite", "jsonl"] as const) rows.push(await bytesOf(bench, kind, forking(kind)));
    for (const kind of ["memory", "sqlite", "jsonl"] as const) rows.push(await timeOf(bench, kind, branching));
    for (const kind of ["sqlite", "jsonl"] as const) rows.push(await bytesOf(bench, kind, branching));
    for (const kind of ["sqlite", "jsonl"] as const) rows.push(await firstBranch(bench, kind));
    return rows;
  },
};

/** An operation to measure, and whether it has a target. */
interface Operation {
  readonly name: string;
  readonly targeted: boolean;
  /** Whether it copies its source, so that only few repetitions are possible. */
  readonly copies: boolean;
  run(fixture: OpenFixture, index: number): Promise<unknown>;
}

/** A JSONL session is one file that can be moved elsewhere, so a fork may copy it: it has no target. */
function forking(kind: StoreKind): Operation {
  return {
    name: "fork",
    targeted: kind !== "jsonl",
    copies: kind === "jsonl",
    run: ({ store, sessionId }) => store.fork(sessionId, createHeader()),
  };
}

const branching: Operation = {
  name: "branch(entryId)",
  targeted: true,
  copies: false,
  run: ({ tree, entryIds }, index) => tree.branch(entryIds[(index * 7) % entryIds.length] as string),
};

async function timeOf(bench: Bench, kind: StoreKind, operation: Operation): Promise<Row> {
  const { entriesSmall, entriesLarge, rounds } = bench.sizes;
  const forks = operation.copies ? 1 : bench.sizes.forks;
  await using small = await bench.fixtures.open(kind, entriesSmall);
  await using large = await bench.fixtures.open(kind, entriesLarge);
  bench.progress(`fork: time of ${operation.name}, ${kind}`);
  const raceOptions = operation.copies ? { rounds: Math.min(rounds, COPIES_MAX), warmups: 1 } : bench.sizes;
  const repeat = (fixture: OpenFixture): Contender => ({
    async run() {
      for (let index = 0; index < forks; index++) await operation.run(fixture, index);
    },
  });
  const samples = await race({ small: repeat(small), large: repeat(large) }, raceOptions);
  const ratio = timeRatio(samples.large, samples.small);
  return {
    section,
    what: `${kind}, ${operation.name} of ${formatCount(entriesLarge)} entries`,
    measured: formatMs(medianMs(samples.large) / forks),
    against: `${formatMs(medianMs(samples.small) / forks)} of ${formatCount(entriesSmall)} entries`,
    ratio,
    ...(operation.targeted ? { target: atMost(ratio, TIME_MAX) } : {}),
  };
}

async function bytesOf(bench: Bench, kind: DurableKind, operation: Operation): Promise<Row> {
  const { entriesSmall, entriesLarge, forksForBytes } = bench.sizes;
  bench.progress(`fork: bytes of ${operation.name}, ${kind}`);
  const times = operation.copies ? Math.min(forksForBytes, COPIES_MAX) : forksForBytes;
  const small = await growthOf(bench, kind, operation, { entries: entriesSmall, times });
  const large = await growthOf(bench, kind, operation, { entries: entriesLarge, times });
  return {
    section,
    what: `${kind}, ${operation.name} of ${formatCount(entriesLarge)} entries, growth of all files`,
    measured: formatBytes(large),
    against: `${formatBytes(small)} of ${formatCount(entriesSmall)} entries`,
    ratio: large / small,
    ...(operation.targeted ? { target: atMost(large, BYTES_MAX, " B") } : {}),
  };
}

/** How much the files grow with each operation, after all pending writes. */
async function growthOf(
  bench: Bench,
  kind: DurableKind,
  operation: Operation,
  { entries, times }: { readonly entries: number; readonly times: number },
): Promise<number> {
  const fixture = await bench.fixtures.open(kind, entries);
  const before = await directoryBytes(fixture.folder);
  for (let index = 0; index < times; index++) await operation.run(fixture, index);
  await fixture.store.close();
  await settleFiles(kind, fixture.folder);
  return ((await directoryBytes(fixture.folder)) - before) / times;
}

/** A store that was just opened has nothing in memory that locates an old entry. */
async function firstBranch(bench: Bench, kind: DurableKind): Promise<Row> {
  const { entriesSmall, entriesLarge, warmups } = bench.sizes;
  const small = await bench.fixtures.copy(kind, entriesSmall);
  const large = await bench.fixtures.copy(kind, entriesLarge);
  bench.progress(`fork: first branch(entryId) of an opened session, ${kind}`);
  const openAndBranch = (stored: typeof small): Contender => {
    let fixture: OpenFixture;
    return {
      async run(round) {
        fixture = await openFixture(kind, stored);
        await branching.run(fixture, round + warmups);
      },
      finish: () => fixture.store.close(),
    };
  };
  const samples = await race({ small: openAndBranch(small), large: openAndBranch(large) }, bench.sizes);
  return {
    section,
    what: `${kind}, open + branch(entryId) of ${formatCount(entriesLarge)} entries`,
    measured: formatMs(medianMs(samples.large)),
    against: `${formatMs(medianMs(samples.small))} of ${formatCount(entriesSmall)} entries`,
    ratio: timeRatio(samples.large, samples.small),
  };
}
