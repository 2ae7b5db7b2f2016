import { type Entry, SessionTree } from "skein";
import type { OpenFixture } from "../fixtures.ts";
import { formatCount, formatMs } from "../format.ts";
import { type Contender, race, type Sample } from "../race.ts";
import { below, type Row, type Target } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { bestMs, medianMs, timeRatio } from "../statistics.ts";
import type { StoreKind } from "../store-kind.ts";

const section = "tree";
const TREE_MS_MAX = 200;

/** The whole session as a tree. */
export const treeSection: Section = {
  name: section,
  async run(bench) {
    const rows: Row[] = [];
    for (const kind of ["memory", "jsonl", "sqlite"] as const) rows.push(...(await measureTree(bench, kind)));
    return rows;
  },
};

async function measureTree(bench: Bench, kind: StoreKind): Promise<Row[]> {
  const { entriesLarge, trees } = bench.sizes;
  await using fixture = await bench.fixtures.open(kind, entriesLarge);
  bench.progress(`tree: ${kind}`);
  const entries = await fixture.tree.entries();
  const samples = await race(
    { first: firstTree(fixture), loaded: loadedTree(fixture), bare: { run: async () => void bareTree(entries) } },
    { rounds: trees, warmups: 1, collects: true },
  );
  const row = (what: string, of: readonly Sample[], target?: Target): Row => ({
    section,
    what: `${kind}, getTree of ${formatCount(entriesLarge)} entries, ${what}`,
    measured: `${formatMs(medianMs(of))}, best round ${formatMs(bestMs(of))}`,
    against: `${formatMs(medianMs(samples.bare))}, bare loop that links the same entries`,
    ratio: timeRatio(of, samples.bare),
    ...(target === undefined ? {} : { target }),
  });
  return [
    row("entries loaded", samples.loaded, below(medianMs(samples.loaded), TREE_MS_MAX, "ms")),
    row("first call, which loads them", samples.first),
  ];
}

function firstTree({ store, sessionId }: OpenFixture): Contender {
  let tree: SessionTree;
  return {
    async prepare() {
      tree = await SessionTree.on(store, sessionId);
    },
    run: async () => void (await tree.getTree()),
  };
}

function loadedTree({ store, sessionId }: OpenFixture): Contender {
  let tree: SessionTree;
  return {
    async prepare() {
      tree = await SessionTree.on(store, sessionId);
      await tree.entries();
    },
    run: async () => void (await tree.getTree()),
  };
}

interface BareNode {
  readonly entry: Entry;
  readonly children: BareNode[];
}

/** The minimum work: one object for each entry, added to its parent. */
function bareTree(entries: readonly Entry[]): BareNode[] {
  const nodes = new Map(entries.map((entry): [string, BareNode] => [entry.id, { entry, children: [] }]));
  const roots: BareNode[] = [];
  for (const node of nodes.values()) {
    const siblings = node.entry.parentId === null ? roots : nodes.get(node.entry.parentId)?.children;
    siblings?.push(node);
  }
  return roots;
}
