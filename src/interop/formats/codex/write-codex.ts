import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import { type Entry, isNode } from "../../../session/log/entry.ts";
import type { ForeignSource } from "../foreign-format.ts";
import { WriteReport } from "../foreign-report.ts";
import { pathOf } from "../foreign-path.ts";
import { isFields } from "../foreign-values.ts";
import { isOneLine, KeptLines } from "../kept-line.ts";
import { foreignRest, type JsonPatch, applyPatch } from "../json-patch.ts";
import { OWN_ORIGINATOR } from "./read-codex.ts";
import { CodexWriting, itemsOfMessage, lineOfCompaction, linesOfEntry } from "./codex-line.ts";

/** Writes the current branch of a session as a rollout of Codex, which has no branches. */
export async function* writeCodex(source: ForeignSource, report: WriteReport): AsyncGenerator<string, void, undefined> {
  const path = await pathOf(source);
  const keptFrom = new Set(path.compactions.map(({ firstKeptEntryId }) => firstKeptEntryId));
  const writing = new CodexWriting(source.cwd, source.foreignId, report);
  const lines = new KeptLines("codex");
  let begun = false;
  /** The items that the next compaction keeps; null if it keeps none. */
  let kept: JsonObject[] | null = null;
  for await (const entry of source.entries()) {
    const verbatim = lines.take(entry);
    if (isNode(entry) && !path.ids.has(entry.id)) {
      if (verbatim === undefined) report.omit("entry on another branch");
      continue;
    }
    if (!begun && verbatim !== null) {
      begun = true;
      yield headerOf(source, verbatim);
      if (verbatim !== undefined && isHeader(verbatim)) continue;
    }
    if (keptFrom.has(entry.id) && entry.type !== "compaction") kept = [];
    if (verbatim === null) continue;
    if (verbatim !== undefined) {
      report.verbatim++;
      yield `${verbatim}\n`;
      continue;
    }
    const written = entry.type === "compaction" ? compacted(entry, kept ?? [], report) : linesOf(entry, writing);
    if (entry.type === "compaction") kept = null;
    if (written === null) {
      if (entry.type !== "leaf") report.omit(entry.type);
      continue;
    }
    report.written++;
    if (kept !== null) for (const item of itemsIn(written)) kept.push(item);
    for (const line of written) yield line;
  }
  if (!begun) yield headerOf(source, undefined);
}

/** The first line: the one that an import kept, if any, with the requested id and directory. */
function headerOf({ header, cwd, foreignId }: ForeignSource, verbatim: string | undefined): string {
  const { createdAt } = header;
  const plain = {
    id: foreignId,
    timestamp: createdAt,
    cwd,
    originator: OWN_ORIGINATOR,
    cli_version: "0.0.0",
    source: "cli",
  };
  const kept: unknown = verbatim !== undefined && isHeader(verbatim) ? JSON.parse(verbatim) : null;
  if (!isFields(kept) || !isFields(kept.payload))
    return `${JSON.stringify({ timestamp: createdAt, type: "session_meta", payload: plain })}\n`;
  const { session_id: named } = kept.payload;
  const payload = { ...kept.payload, id: foreignId, cwd, ...(named === undefined ? {} : { session_id: foreignId }) };
  return `${JSON.stringify({ ...kept, payload })}\n`;
}

function isHeader(line: string): boolean {
  const value: unknown = JSON.parse(line);
  return isFields(value) && value.type === "session_meta";
}

function linesOf(entry: Entry, writing: CodexWriting): string[] | null {
  const rest = foreignRest(entry, "codex");
  const { timestamp } = entry;
  if (!Array.isArray(rest))
    return linesOfEntry(entry, writing)?.map((line) => JSON.stringify({ timestamp, ...line }) + "\n") ?? null;
  const items = entry.type === "message" ? itemsOfMessage(entry.message, new WriteReport()) : [];
  let next = 0;
  return (rest as readonly JsonValue[]).map((change) => {
    if (isJsonLine(change)) return `${change}\n`;
    const line = { type: "response_item", payload: items[next++] ?? {} };
    return `${JSON.stringify(applyPatch<JsonObject>(line, change as unknown as JsonPatch))}\n`;
  });
}

function compacted(
  entry: Extract<Entry, { type: "compaction" }>,
  kept: readonly JsonObject[],
  report: WriteReport,
): string[] {
  const rest = foreignRest(entry, "codex");
  if (Array.isArray(rest) && rest.every(isJsonLine)) return (rest as readonly string[]).map((line) => `${line}\n`);
  return [`${JSON.stringify({ timestamp: entry.timestamp, ...lineOfCompaction(entry, kept, report) })}\n`];
}

function isJsonLine(value: unknown): value is string {
  return typeof value === "string" && isOneLine(value);
}

/** The items among the lines of an entry. */
function itemsIn(lines: readonly string[]): JsonObject[] {
  const values = lines.map((line) => JSON.parse(line) as JsonObject);
  return values.flatMap(({ type, payload }) => (type === "response_item" && isFields(payload) ? [payload] : []));
}
