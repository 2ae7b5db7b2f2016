import { appendFileSync } from "node:fs";
import { appendFile, type FileHandle, open, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createHeader, type SessionStore, SessionTree } from "skein";
import { type BareDatabase, openBareDatabase } from "../bare-database.ts";
import { directoryBytes } from "../directory-bytes.ts";
import { formatBytes, formatMs } from "../format.ts";
import { MESSAGE_CHARACTERS, messageOf } from "../message-of.ts";
import { type Contender, race, type Sample } from "../race.ts";
import { atLeast, atMost, type Row, type Target } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { PAUSE_MS, settleFiles } from "../settle-files.ts";
import { medianMs, timeRatio, writtenBytes } from "../statistics.ts";
import { openStoreOf } from "../store-kind.ts";

const section = "append";
const BYTES_MAX = 700;
const COLLECTED = "the same, all garbage collected before each round";

/** Sequential appends, compared with the minimum that a file or a database needs for the same bytes. */
export const appendSection: Section = {
  name: section,
  async run(bench) {
    const lines = await linesOf(bench, bench.sizes.appends);
    return [
      ...(await appendToFile(bench, lines)),
      await appendAfterPause(bench, lines),
      await appendSynced(bench, lines),
      ...(await appendToDatabase(bench, lines)),
    ];
  },
};

async function appendToFile(bench: Bench, lines: readonly Buffer[]): Promise<Row[]> {
  const { appends } = bench.sizes;
  const folder = await bench.fixtures.folder("jsonl");
  await using jsonl = await openStoreOf("jsonl", folder);
  await using memory = await openStoreOf("memory", "");
  const bare = bareAppender(join(await bench.fixtures.folder("bare"), "bare"), lines);
  const skein = { ...(await appender(jsonl, appends)), settle: () => settleFiles("jsonl", folder) };
  const bytesBefore = await directoryBytes(folder);
  bench.progress("append: jsonl and memory against a bare file");
  const samples = await race({ bare, jsonl: skein, memory: await appender(memory, appends) }, bench.sizes);
  const collected = await race({ bare, jsonl: skein }, { ...bench.sizes, collects: true });
  const growth =
    ((await directoryBytes(folder)) - bytesBefore) / ((appends + 1) * 2 * (bench.sizes.rounds + bench.sizes.warmups));
  // Subtracts the writes with which the runtime wakes itself, as measured in the bare loop: they reach no file.
  const wakeups = bytesPer(samples.bare, appends) - lines.reduce((sum, line) => sum + line.length, 0) / lines.length;
  const written = bytesPer(samples.jsonl, appends) - wakeups;
  return [
    speedRow("jsonl, one append at a time", samples.jsonl, samples.bare, appends, 0.4, "bare `appendFileSync`"),
    speedRow(`jsonl, ${COLLECTED}`, collected.jsonl, collected.bare, appends, null, "bare `appendFileSync`"),
    speedRow("memory, one append at a time", samples.memory, samples.bare, appends, null, "bare `appendFileSync`"),
    bytesRow("jsonl, growth of all files for each message", growth, atMost(growth, BYTES_MAX, " B")),
    bytesRow("jsonl, bytes given to write calls for each message", written, atMost(written, BYTES_MAX, " B")),
  ];
}

/** The rhythm of an agent: by the next append, the store has released its lock and closed its file. */
async function appendAfterPause(bench: Bench, lines: readonly Buffer[]): Promise<Row> {
  await using jsonl = await openStoreOf("jsonl", await bench.fixtures.folder("jsonl-paused"));
  const path = join(await bench.fixtures.folder("bare-paused"), "bare");
  const pause = (): Promise<void> => sleep(PAUSE_MS);
  bench.progress("append: jsonl after a pause");
  const samples = await race(
    {
      bare: { prepare: pause, run: () => appendFile(path, lines[0] as Buffer) },
      jsonl: { run: (await appender(jsonl, 1)).run, prepare: pause },
    },
    bench.sizes,
  );
  const what = `jsonl, an append after a pause of ${PAUSE_MS} ms`;
  return speedRow(what, samples.jsonl, samples.bare, 1, null, "bare open + write + close");
}

async function appendSynced(bench: Bench, lines: readonly Buffer[]): Promise<Row> {
  const appends = bench.sizes.appendsSynced;
  await using jsonl = await openStoreOf("jsonl", await bench.fixtures.folder("jsonl-synced"), "fsync");
  const bare = await open(join(await bench.fixtures.folder("bare-synced"), "bare"), "a");
  bench.progress("append: jsonl that waits for the disk against a bare file that does");
  const samples = await race(
    { bare: syncedAppender(bare, lines.slice(0, appends)), jsonl: await appender(jsonl, appends) },
    bench.sizes,
  );
  await bare.close();
  return speedRow("jsonl, durability fsync", samples.jsonl, samples.bare, appends, 0.6, "bare write + `datasync`");
}

async function appendToDatabase(bench: Bench, lines: readonly Buffer[]): Promise<Row[]> {
  const { appends } = bench.sizes;
  await using sqlite = await openStoreOf("sqlite", await bench.fixtures.folder("sqlite"));
  const database = await openBareDatabase(join(await bench.fixtures.folder("bare-sqlite"), "bare.db"));
  bench.progress("append: sqlite against a bare insert");
  const contenders = { bare: inserter(database, lines), sqlite: await appender(sqlite, appends) };
  const samples = await race(contenders, bench.sizes);
  const collected = await race(contenders, { ...bench.sizes, collects: true });
  database.close();
  const written = bytesPer(samples.sqlite, appends);
  const bare = bytesPer(samples.bare, appends);
  return [
    speedRow("sqlite, one append at a time", samples.sqlite, samples.bare, appends, 0.5, "bare prepared insert"),
    speedRow(`sqlite, ${COLLECTED}`, collected.sqlite, collected.bare, appends, null, "bare prepared insert"),
    {
      section,
      what: "sqlite, bytes given to write calls for each message",
      measured: formatBytes(written),
      against: `${formatBytes(bare)}, bare prepared insert`,
      ratio: written / bare,
    },
  ];
}

/** Appends lines without a pause. */
function bareAppender(path: string, lines: readonly Buffer[]): Contender {
  return {
    async run() {
      for (const line of lines) appendFileSync(path, line);
    },
  };
}

/** The same to a file that stays open, with a sync after each line. */
function syncedAppender(handle: FileHandle, lines: readonly Buffer[]): Contender {
  return {
    async run() {
      for (const line of lines) {
        await handle.write(line);
        await handle.datasync();
      }
    },
  };
}

function inserter(database: BareDatabase, lines: readonly Buffer[]): Contender {
  database.exec("CREATE TABLE entry (session TEXT, seq INTEGER, id TEXT, body TEXT, PRIMARY KEY (session, seq))");
  const insert = database.prepare("INSERT INTO entry (session, seq, id, body) VALUES (?, ?, ?, ?)");
  const rows = lines.map((line) => line.toString()).map((body) => ({ id: JSON.parse(body).id as string, body }));
  let seq = 0;
  return {
    async run() {
      for (const { id, body } of rows) insert.run("a-session", seq++, id, body);
    },
  };
}

async function appender(store: SessionStore, appends: number): Promise<Contender> {
  const { header } = await store.create(createHeader());
  const tree = await SessionTree.on(store, header.id);
  return {
    // The first append of a series opens the file and takes the lock.
    warmUp: async () => void (await tree.appendMessage(messageOf(0))),
    async run() {
      for (let index = 0; index < appends; index++) await tree.appendMessage(messageOf(index));
    },
  };
}

/** The lines of a JSONL session with the given number of messages. */
async function linesOf(bench: Bench, count: number): Promise<Buffer[]> {
  const folder = await bench.fixtures.folder("lines");
  const store = await openStoreOf("jsonl", folder);
  await (await appender(store, count)).run(0);
  await store.close();
  const [name] = (await readdir(folder, { recursive: true })).filter((path) => path.endsWith(".jsonl"));
  const lines = (await readFile(join(folder, name as string), "utf8")).split("\n").filter((line) => line !== "");
  return lines.slice(-count).map((line) => Buffer.from(`${line}\n`));
}

function speedRow(
  what: string,
  samples: readonly Sample[],
  bare: readonly Sample[],
  appends: number,
  limit: number | null,
  against: string,
): Row {
  const speed = timeRatio(bare, samples);
  return {
    section,
    what,
    measured: `${formatMs(medianMs(samples) / appends)} each`,
    against: `${formatMs(medianMs(bare) / appends)}, ${against}`,
    ratio: speed,
    ...(limit === null ? {} : { target: atLeast(speed, limit) }),
  };
}

function bytesRow(what: string, bytes: number, target: Target): Row {
  const ratio = bytes / MESSAGE_CHARACTERS;
  return {
    section,
    what,
    measured: formatBytes(bytes),
    against: `${formatBytes(MESSAGE_CHARACTERS)} of text`,
    ratio,
    target,
  };
}

function bytesPer(samples: readonly Sample[], appends: number): number {
  return writtenBytes(samples) / (appends * samples.length);
}
