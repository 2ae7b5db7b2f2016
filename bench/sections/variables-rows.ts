import { createHeader, type SessionStore } from "skein";
import { formatBytes, formatCount, formatMs } from "../format.ts";
import { type Contender, race } from "../race.ts";
import { atMost, type Row } from "../row.ts";
import type { Bench } from "../section.ts";
import { settleFiles } from "../settle-files.ts";
import { medianMs, timeRatio, writtenBytes } from "../statistics.ts";
import { openStoreOf, type StoreKind } from "../store-kind.ts";

const section = "growth";
const GROWTH_MAX = 2;
const OPEN_MS_MAX = 100;

/**
 * The mean time of setting one variable in a session that gets many of them, compared with sessions that get few; and
 * the time to open the large session and read all variables.
 */
export async function measureVariables(bench: Bench, kind: StoreKind): Promise<Row[]> {
  const { variablesFew, variablesMany, rounds } = bench.sizes;
  const folder = await bench.fixtures.folder(`${kind}-variables`);
  await using store = await openStoreOf(kind, folder);
  bench.progress(`growth: ${kind}, ${variablesMany} variables`);
  const contender = (each: number): Contender => ({
    async run() {
      for (let set = 0; set < variablesMany; set += each) await setVariables(store, each);
    },
    settle: () => settleFiles(kind, folder),
  });
  const samples = await race(
    { few: contender(variablesFew), many: contender(variablesMany) },
    { rounds: Math.min(3, rounds), warmups: 1 },
  );
  const [few, many] = [samples.few, samples.many];
  const what = `${kind}, setting one of ${formatCount(variablesMany)} variables, from the first on`;
  const beside = `in sessions of ${formatCount(variablesFew)}`;
  const sets = variablesMany * many.length;
  const bytes = { few: writtenBytes(few) / sets, many: writtenBytes(many) / sets };
  const row = (unit: string, measured: string, against: string, ratio: number): Row => {
    const target = atMost(ratio, GROWTH_MAX);
    return { section, what: `${what}: ${unit}`, measured, against: `${against} ${beside}`, ratio, target };
  };
  const perSet = (side: typeof few): string => formatMs(medianMs(side) / variablesMany);
  const rows = [row("time", perSet(many), perSet(few), timeRatio(many, few))];
  if (kind === "memory") return rows;
  rows.push(row("bytes", formatBytes(bytes.many), formatBytes(bytes.few), bytes.many / bytes.few));
  return [...rows, await measureOpening(kind, folder, variablesMany)];
}

async function measureOpening(kind: StoreKind, folder: string, count: number): Promise<Row> {
  let id: string;
  {
    await using store = await openStoreOf(kind, folder);
    id = await setVariables(store, count);
  }
  const times: number[] = [];
  for (let round = 0; round < 5; round++) {
    await using store = await openStoreOf(kind, folder);
    const startedAt = performance.now();
    const head = await store.head(id);
    if (head !== null) await store.settings(id, head.path);
    times.push(performance.now() - startedAt);
  }
  const best = Math.min(...times);
  return {
    section,
    what: `${kind}, opening a session with ${formatCount(count)} variables and reading them`,
    measured: formatMs(best),
    against: `at most ${OPEN_MS_MAX} ms`,
    ratio: best / OPEN_MS_MAX,
    target: atMost(best / OPEN_MS_MAX, 1),
  };
}

async function setVariables(store: SessionStore, count: number): Promise<string> {
  const { id } = (await store.create(createHeader())).header;
  for (let index = 0; index < count; index++)
    await store.append(id, [{ type: "variables", set: { [`key${index}`]: `value ${index}` }, unset: [] }]);
  return id;
}
