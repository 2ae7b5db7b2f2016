import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
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
/** One of so many sessions belongs to the user. */
const SHARE = 10;
const MADE_AT_ONCE = 16;
/** How long the other users run first, as the first requests meet a store that was just filled. */
const ASKED_BEFORE_MS = 20_000;

/** Erases a user with a tenth of all sessions, and measures how much that slows other users. */
export const eraseSection: Section = {
  name: section,
  async run(bench) {
    const rows = await measure(bench, "sqlite", async () =>
      openStoreOf("sqlite", await bench.fixtures.folder(`sqlite-erase-${randomUUID()}`)),
    );
    const place = serverOf("postgres");
    if ("problem" in place) return [...rows, { section, what: "postgres", measured: `not measured: ${place.problem}` }];
    await using footprint = await openFootprint(place.url);
    const schemas: string[] = [];
    try {
      const postgres = await measure(bench, "postgres", () => {
        const schema = `skein_bench_${randomUUID().slice(0, 8)}`;
        schemas.push(schema);
        return openPostgresStore({ url: place.url, schema });
      });
      return [...rows, ...postgres];
    } finally {
      for (const schema of schemas) await footprint.remove(schema);
    }
  },
};

type OpenStore = () => Promise<SessionStore>;

/** The baseline is measured twice as long, in two equally filled stores, as a store gets slower while it grows. */
async function measure({ sizes, progress }: Bench, kind: string, open: OpenStore): Promise<Row[]> {
  const count = sizes.sessionsMany;
  progress(`erase: ${kind}, erasing a tenth of ${count} sessions`);
  const erasing = await askMeanwhile(open, count, (manager) => manager.erase({ userId: PERSON }));
  progress(`erase: ${kind}, others alone`);
  const alone = await askMeanwhile(open, count, () => setTimeout(erasing.tookMs));
  const what = `${kind}, a user with ${formatCount(erasing.result.sessions)} of ${formatCount(count)} sessions`;
  const ratio = erasing.askedMs / alone.askedMs;
  return [
    { section, what: `${what}: all of it`, measured: formatMs(erasing.tookMs) },
    {
      section,
      what: `${what}: a turn and a look of someone else meanwhile, on average`,
      measured: formatMs(erasing.askedMs),
      against: `${formatMs(alone.askedMs)} without it`,
      ratio,
      target: atMost(ratio, 1.1),
    },
  ];
}

interface Meanwhile<T> {
  readonly result: T;
  readonly tookMs: number;
  /** The mean time of one request of the other users. */
  readonly askedMs: number;
}

async function askMeanwhile<T>(
  open: OpenStore,
  count: number,
  work: (manager: SessionManager) => Promise<T>,
): Promise<Meanwhile<T>> {
  await using store = await open();
  const others = await fill(store, count);
  const manager = new SessionManager({ store, config: { maxTurnsPerSession: Number.MAX_SAFE_INTEGER } });
  await askUntil(manager, others, AbortSignal.timeout(Math.min(ASKED_BEFORE_MS, count)));
  const [startedAt, done] = [performance.now(), new AbortController()];
  const asked = askUntil(manager, others, done.signal);
  const result = await work(manager);
  const tookMs = performance.now() - startedAt;
  done.abort();
  return { result, tookMs, askedMs: await asked };
}

/** The sessions of the other users. */
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

/** Sends requests one after the other; resolves to their mean time. */
async function askUntil(manager: SessionManager, ids: readonly string[], signal: AbortSignal): Promise<number> {
  let [asked, totalMs] = [0, 0];
  do {
    const id = ids[Math.floor(Math.random() * ids.length)] as string;
    const start = performance.now();
    await manager.addTurn(id, { role: "user", content: messageText(asked) });
    await manager.getState(id);
    totalMs += performance.now() - start;
    asked += 1;
    // As between the requests of a server.
    await new Promise((resolve) => setImmediate(resolve));
  } while (!signal.aborted);
  return totalMs / asked;
}
