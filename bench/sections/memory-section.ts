import type { StoredFixture } from "../fixtures.ts";
import { formatBytes, formatCount } from "../format.ts";
import type { AppMemory } from "../read-memory.ts";
import { below, type Row } from "../row.ts";
import { runInChild } from "../run-in-child.ts";
import type { Bench, Section } from "../section.ts";
import { median } from "../statistics.ts";
import type { DurableKind } from "../store-kind.ts";

const section = "memory";
const HELD_MB_MAX = 30;

/** The memory of an open session, compared with an empty one. */
export const memorySection: Section = {
  name: section,
  async run(bench) {
    const rows: Row[] = [];
    for (const kind of ["jsonl", "sqlite"] as const) rows.push(...(await measureMemory(bench, kind)));
    return rows;
  },
};

async function measureMemory(bench: Bench, kind: DurableKind): Promise<Row[]> {
  const { entriesLarge, children } = bench.sizes;
  bench.progress(`memory: ${kind}`);
  const empty: AppMemory[] = [];
  const large: AppMemory[] = [];
  for (let child = 0; child < children; child++) {
    empty.push(await measureChild(kind, { folder: await bench.fixtures.folder("empty"), sessionId: null }));
    large.push(await measureChild(kind, await bench.fixtures.copy(kind, entriesLarge)));
  }
  const what = `${kind}, ${formatCount(entriesLarge)} entries opened, context built, 10 appended`;
  const held = difference(large, empty, ({ heldBytes }) => heldBytes);
  const resident = difference(large, empty, ({ residentBytes }) => residentBytes);
  return [
    {
      section,
      what: `${what}: memory held by JavaScript`,
      ...held.row,
      target: below(held.moreBytes / 1_000_000, HELD_MB_MAX, "MB more"),
    },
    { section, what: `${what}: resident memory of the process`, ...resident.row },
  ];
}

function measureChild(
  kind: DurableKind,
  { folder, sessionId }: Pick<StoredFixture, "folder"> & { sessionId: string | null },
) {
  return runInChild("heap", { kind, folder, sessionId });
}

function difference(large: readonly AppMemory[], empty: readonly AppMemory[], bytesOf: (heap: AppMemory) => number) {
  const bytes = { large: median(large.map(bytesOf)), empty: median(empty.map(bytesOf)) };
  const moreBytes = bytes.large - bytes.empty;
  return {
    moreBytes,
    row: {
      measured: `${formatBytes(bytes.large)}, ${formatBytes(moreBytes)} more`,
      against: `${formatBytes(bytes.empty)} with an empty session`,
      ratio: bytes.large / bytes.empty,
    },
  };
}
