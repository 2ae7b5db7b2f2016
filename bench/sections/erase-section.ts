import { randomUUID } from "node:crypto";
import { createHeader, SessionManager, type SessionStore } from "skein";
import { openPostgresStore } from "skein/postgres";
import { formatCount, formatMs } from "../format.ts";
import { messageText } from "../message-of.ts";
import { atMost, type Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { openFootprint } from "../fleet/footprint.ts";
import { serverOf } from "../servers/server-kind.ts";
import { openStoreOf } from "../store-kind.ts";

const section = "erase";
const PERSON = "person";
/** One session of so many is the person's. */
const SHARE = 10;
const MADE_AT_ONCE = 16;
/** How long others ask before the erasure, and again after it: their sessions and the store grow meanwhile. */
const ASKED_BESIDE_MS = 20_000;

/** Erasing a user with a tenth of all sessions, and what others notice of it. */
export const eraseSection: Section = {
  name: section,
  async run(bench) {
    const sqlite = await openStoreOf("sqlite", await bench.fixtures.folder("sqlite-erase"));
    const rows = await measure(bench, "sqlite", sqlite);
    const place = serverOf("postgres");
    if ("problem" in place) return [...rows, { section, what: "postgres", measured: `not measured: ${place.problem}` }];
    const schema = `skein_bench_${randomUUID().slice(0, 8)}`;
    await using footprint = await openFootprint(place.url);
    try {
      return [...rows, ...(await measure(bench, "postgres", await openPostgresStore({ url: place.url, schema })))];
    } finally {
      await footprint.remove(schema);
    }
  },
};

async function measure({ sizes, progress }: Bench, kind: string, opened: SessionStore): Promise<Row[]> {
  await using store = opened;
  const count = sizes.sessionsMany;
  progress(`erase: ${kind}, making ${count} sessions`);
  const others = await fill(store, count);
  const manager = new SessionManager({ store, config: { maxTurnsPerSession: Number.MAX_SAFE_INTEGER } });
  progress(`erase: ${kind}, others before`);
  const beside = (): Promise<number> =>
    askUntil(manager, others, AbortSignal.timeout(Math.min(ASKED_BESIDE_MS, count)));
  // The first ones find a store that has just been filled.
  await beside();
  const before = await beside();
  progress(`erase: ${kind}, erasing a tenth of ${count} sessions`);
  const [start, done] = [performance.now(), new AbortController()];
  const meanwhile = askUntil(manager, others, done.signal);
  const { sessions } = await manager.erase({ userId: PERSON });
  const tookMs = performance.now() - start;
  done.abort();
  const during = await meanwhile;
  progress(`erase: ${kind}, others after`);
  const after = await beside();
  const what = `${kind}, a user with ${formatCount(sessions)} of ${formatCount(count)} sessions`;
  const ratio = (2 * during) / (before + after);
  return [
    { section, what: `${what}: all of it`, measured: formatMs(tookMs) },
    {
      section,
      what: `${what}: a turn and a look of someone else meanwhile, on average`,
      measured: formatMs(during),
      against: `${formatMs(before)} before, ${formatMs(after)} after`,
      ratio,
      target: atMost(ratio, 1.1),
    },
  ];
}

/** The sessions of others. */
async function fill(store: SessionStore, count: number): Promise<readonly string[]> {
  const others: string[] = [];
  let made = 0;
  const make = async (): Promise<void> => {
    for (let index = made++; index < count; index = made++) {
      const userId = index % SHARE === 0 ? PERSON : `other-${index % 997}`;
      const message = { role: "user", content: messageText(index) } as const;
      const { header } = await store.create(createHeader({ userId }), { entries: [{ type: "message", message }] });
      if (userId !== PERSON) others.push(header.id);
    }
  };
  await Promise.all(Array.from({ length: MADE_AT_ONCE }, make));
  return others;
}

/** Asks one thing after the other; how long each took on average. */
async function askUntil(manager: SessionManager, ids: readonly string[], signal: AbortSignal): Promise<number> {
  let [asked, totalMs] = [0, 0];
  do {
    const id = ids[Math.floor(Math.random() * ids.length)] as string;
    const start = performance.now();
    await manager.addTurn(id, { role: "user", content: messageText(asked) });
    await manager.getState(id);
    totalMs += performance.now() - start;
    asked += 1;
    // As between requests of a server.
    await new Promise((resolve) => setImmediate(resolve));
  } while (!signal.aborted);
  return totalMs / asked;
}
