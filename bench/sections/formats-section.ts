import { createReadStream } from "node:fs";
import { writeFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { foreignFormat, ImportCache, importFiles } from "skein/formats";
import { formatBytes, formatCount, formatMs } from "../format.ts";
import { messageText } from "../message-of.ts";
import { readMemory } from "../read-memory.ts";
import { atLeast, atMost, type Row } from "../row.ts";
import type { Bench, Section } from "../section.ts";
import { type DurableKind, openStoreOf, storeUrlOf } from "../store-kind.ts";

const section = "formats";
const SPEED_MIN = 0.3;
const AGAIN_MAX = 0.05;
const MEMORY_MAX = 1.5;

/** The import of another program's sessions, and a second import. */
export const formatsSection: Section = {
  name: section,
  async run(bench) {
    const { foreignFiles: count, foreignFileBytes: bytes } = bench.sizes;
    bench.progress(`formats: ${count} files of ${formatBytes(bytes)}`);
    const folder = await bench.fixtures.folder("foreign");
    const paths: string[] = [];
    for (let index = 0; index < count; index++) paths.push(await writeSession(folder, index, bytes));
    const rows: Row[] = [];
    for (const kind of ["jsonl", "sqlite"] as const) rows.push(...(await importRows(bench, kind, folder, paths)));
    return rows;
  },
};

async function importRows(bench: Bench, kind: DurableKind, folder: string, paths: readonly string[]): Promise<Row[]> {
  bench.progress(`formats: import, ${kind}`);
  const { foreignFiles: count, foreignFileBytes: bytes } = bench.sizes;
  const place = await bench.fixtures.folder(`foreign-${kind}`);
  const cache = await ImportCache.open(join(place, "seen.json"));
  await using store = await openStoreOf(kind, place);
  // Half of the reads come before and half after, so that a temporarily slow machine affects both.
  const half = paths.length >> 1;
  let bareMs = await readLines(paths.slice(0, half));
  const held: number[] = [];
  const runImport = async (): Promise<number> => {
    const startedAt = performance.now();
    let outsideMs = 0;
    for await (const { number } of importFiles(
      { store, userId: "user" },
      { format: foreignFormat("claude-code"), path: folder, cache, storeUrl: storeUrlOf(kind, place) },
    )) {
      if (number !== Math.ceil(count / 10) && number !== count) continue;
      const readAt = performance.now();
      held.push(readMemory().residentBytes);
      outsideMs += performance.now() - readAt;
    }
    return performance.now() - startedAt - outsideMs;
  };
  const importMs = await runImport();
  bareMs += await readLines(paths.slice(half));
  const againMs = await runImport();
  const [early = Number.NaN, late = Number.NaN] = held;
  const what = `${kind}, ${formatCount(count)} sessions of ${formatBytes(bytes)}`;
  return [
    {
      ...{
        section,
        what: `${what}, import`,
        measured: `${formatMs(importMs)} on ${availableParallelism()} cores`,
        against: `${formatMs(bareMs)} to read and parse the lines on one core`,
      },
      ...{ ratio: bareMs / importMs, target: atLeast(bareMs / importMs, SPEED_MIN) },
    },
    {
      ...{
        section,
        what: `${what}, imported again`,
        measured: formatMs(againMs),
        against: `${formatMs(importMs)} the first time`,
      },
      ...{ ratio: againMs / importMs, target: atMost(againMs / importMs, AGAIN_MAX) },
    },
    {
      ...{
        section,
        what: `${what}, memory of the process at the end`,
        measured: formatBytes(late),
        against: `${formatBytes(early)} after a tenth`,
      },
      ...{ ratio: late / early, target: atMost(late / early, MEMORY_MAX) },
    },
  ];
}

/** The time to read files line by line and to parse each line. */
async function readLines(paths: readonly string[]): Promise<number> {
  const startedAt = performance.now();
  for (const path of paths) {
    for await (const line of createInterface({ input: createReadStream(path), crlfDelay: Number.POSITIVE_INFINITY }))
      JSON.parse(line);
  }
  return performance.now() - startedAt;
}

/** Writes a session in the format of Claude Code: questions, answers in two lines with a call, and results. */
async function writeSession(folder: string, index: number, bytesMin: number): Promise<string> {
  const sessionId = `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`;
  const lines: string[] = [];
  let bytes = 0;
  let parentUuid: string | null = null;
  const add = (own: object): void => {
    const number = lines.length;
    const uuid = `${String(number).padStart(8, "0")}-0000-4000-8000-${String(index).padStart(12, "0")}`;
    const timestamp = new Date(Date.UTC(2025, 0, 1) + number * 1000).toISOString();
    const line = JSON.stringify({
      parentUuid,
      isSidechain: false,
      ...own,
      uuid,
      timestamp,
      userType: "external",
      cwd: "/srv/shop",
      sessionId,
      version: "2.1.197",
    });
    parentUuid = uuid;
    lines.push(line);
    bytes += line.length + 1;
  };
  for (let turn = 0; bytes < bytesMin; turn++) {
    const envelope = {
      id: `msg_${turn}`,
      type: "message",
      role: "assistant",
      model: "model",
      stop_reason: "tool_use",
      usage: { input_tokens: 10, output_tokens: 20 },
    };
    const call = { type: "tool_use", id: `toolu_${turn}`, name: "Read", input: { file_path: "/srv/shop/list.txt" } };
    const result = { type: "tool_result", tool_use_id: `toolu_${turn}`, content: messageText(turn) };
    add({ type: "user", message: { role: "user", content: messageText(turn) } });
    add({ type: "assistant", message: { ...envelope, content: [{ type: "text", text: messageText(turn + 1) }] } });
    add({ type: "assistant", message: { ...envelope, content: [call] } });
    add({ type: "user", message: { role: "user", content: [result] }, toolUseResult: { content: messageText(turn) } });
  }
  const path = join(folder, `${sessionId}.jsonl`);
  await writeFile(path, `${lines.join("\n")}\n`);
  return path;
}
