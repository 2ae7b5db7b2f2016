import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { createHeader, type SessionStore } from "skein";
import { openBareDatabase } from "../bare-database.ts";
import { formatCount, formatMs } from "../format.ts";
import { messageOf, messageText } from "../message-of.ts";
import { type Contender, race, type Sample } from "../race.ts";
import { below, type Row, type Target } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { bestMs, medianMs, timeRatio } from "../statistics.ts";
import { type DurableKind, openStoreOf } from "../store-kind.ts";

const section = "list";
const MESSAGES_EACH = 4;

/** Listing all sessions of a store on one page. */
export const listSection: Section = {
  name: section,
  async run(bench) {
    return [...(await listFiles(bench)), ...(await listDatabase(bench))];
  },
};

async function listFiles(bench: Bench): Promise<Row[]> {
  const { sessions, lists, warmups } = bench.sizes;
  const folder = await bench.fixtures.folder("jsonl-list");
  const sessionId = await fill(bench, "jsonl", folder);
  bench.progress("list: jsonl");
  await using warm = await openStoreOf("jsonl", folder);
  await using changed = await openStoreOf("jsonl", folder);
  const samples = await race(
    {
      warm: lister(warm, sessions),
      changed: {
        ...lister(changed, sessions),
        async prepare() {
          await changed.append(sessionId, [{ type: "message", message: messageOf(0) }]);
        },
      },
      cold: coldLister("jsonl", folder, sessions),
      bare: { run: () => statAll(folder) },
    },
    { rounds: lists, warmups },
  );
  const row = (what: string, of: readonly Sample[], target?: Target): Row => ({
    section,
    what: `jsonl, list ${formatCount(sessions)} sessions, ${what}`,
    measured: `${formatMs(medianMs(of))}, best round ${formatMs(bestMs(of))}`,
    against: `${formatMs(medianMs(samples.bare))}, bare \`readdir\` + \`stat\` of each file`,
    ratio: timeRatio(of, samples.bare),
    ...(target === undefined ? {} : { target }),
  });
  return [
    row("warm", samples.warm, below(medianMs(samples.warm), 15, "ms")),
    row("warm, after an append", samples.changed),
    row("new store object", samples.cold),
  ];
}

async function listDatabase(bench: Bench): Promise<Row[]> {
  const { sessions, lists, warmups } = bench.sizes;
  const folder = await bench.fixtures.folder("sqlite-list");
  await fill(bench, "sqlite", folder);
  bench.progress("list: sqlite");
  await using warm = await openStoreOf("sqlite", folder);
  const bare = await bareSelect(join(await bench.fixtures.folder("bare-list"), "bare.db"), sessions);
  const samples = await race(
    { warm: lister(warm, sessions), cold: coldLister("sqlite", folder, sessions), bare: bare.contender },
    { rounds: lists, warmups },
  );
  bare.close();
  const row = (what: string, of: readonly Sample[], target?: Target): Row => ({
    section,
    what: `sqlite, list ${formatCount(sessions)} sessions, ${what}`,
    measured: `${formatMs(medianMs(of))}, best round ${formatMs(bestMs(of))}`,
    against: `${formatMs(medianMs(samples.bare))}, bare select of as many JSON rows, parsed`,
    ratio: timeRatio(of, samples.bare),
    ...(target === undefined ? {} : { target }),
  });
  return [row("warm", samples.warm, below(medianMs(samples.warm), 10, "ms")), row("new store object", samples.cold)];
}

/** Makes the sessions, closes the store, and returns the id of one of them. */
async function fill(bench: Bench, kind: DurableKind, folder: string): Promise<string> {
  bench.progress(`list: making ${bench.sizes.sessions} ${kind} sessions`);
  await using store = await openStoreOf(kind, folder);
  let id = "";
  for (let session = 0; session < bench.sizes.sessions; session++) {
    id = (await store.create(createHeader({ cwd: "/project", userId: `user-${session % 10}` }))).header.id;
    for (let index = 0; index < MESSAGES_EACH; index++) {
      await store.append(id, [{ type: "message", message: messageOf(session + index) }]);
    }
  }
  return id;
}

function lister(store: SessionStore, sessions: number): Contender {
  return { run: () => listAll(store, sessions) };
}

function coldLister(kind: DurableKind, folder: string, sessions: number): Contender {
  let store: SessionStore;
  return {
    async run() {
      store = await openStoreOf(kind, folder);
      await listAll(store, sessions);
    },
    finish: () => store.close(),
  };
}

async function listAll(store: SessionStore, sessions: number): Promise<void> {
  const { items, damaged } = await store.list({ limit: sessions });
  if (items.length === sessions && damaged.length === 0) return;
  throw new Error(
    `The listing has ${items.length} sessions and ${damaged.length} damaged ones instead of ${sessions}.`,
  );
}

async function statAll(folder: string): Promise<void> {
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".jsonl"));
  await Promise.all(names.map((name) => stat(join(folder, name))));
}

/** A table with a JSON text of about the size of a head for each session. */
async function bareSelect(path: string, sessions: number): Promise<{ contender: Contender; close(): void }> {
  const database = await openBareDatabase(path);
  database.exec("CREATE TABLE head (id TEXT PRIMARY KEY, modified_at TEXT, body TEXT)");
  const insert = database.prepare("INSERT INTO head (id, modified_at, body) VALUES (?, ?, ?)");
  for (let session = 0; session < sessions; session++) {
    const header = createHeader({ cwd: "/project" });
    insert.run(
      header.id,
      header.createdAt,
      JSON.stringify({ header, firstMessage: messageText(session).slice(0, 200) }),
    );
  }
  const select = database.prepare("SELECT body FROM head ORDER BY modified_at DESC, id DESC LIMIT ?");
  const run = async (): Promise<void> => {
    for (const row of select.all(sessions)) JSON.parse((row as { body: string }).body);
  };
  return { contender: { run }, close: () => database.close() };
}
