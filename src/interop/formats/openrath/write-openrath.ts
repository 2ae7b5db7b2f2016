import type { JsonObject } from "../../../internal/json.ts";
import { type Entry, isNode } from "../../../session/log/entry.ts";
import { addUsage, NO_USAGE, type Usage } from "../../../session/usage.ts";
import type { ForeignSource } from "../foreign-format.ts";
import { asUuid } from "../foreign-id.ts";
import { noteOf } from "../foreign-note.ts";
import { pathOf } from "../foreign-path.ts";
import type { WriteReport } from "../foreign-report.ts";
import { isFields } from "../foreign-values.ts";
import { KeptLines } from "../kept-line.ts";
import { foreignRest, type JsonPatch, applyPatch } from "../json-patch.ts";
import { rowOfEntry } from "./openrath-row.ts";

/**
 * Writes the context of a session as a file of OpenRath, whose model sees every row: entries before the last compaction are
 * omitted unless it keeps them, and only the current branch is written.
 */
export async function* writeOpenRath(
  source: ForeignSource,
  report: WriteReport,
): AsyncGenerator<string, void, undefined> {
  yield lineOf(headerOf(source));
  const path = await pathOf(source);
  const lines = new KeptLines("openrath");
  const compaction = path.compactions.at(-1);
  let [index, usage, closed]: [number, Usage, Extract<Entry, { type: "trailer" }> | null] = [0, NO_USAGE, null];
  const write = (entry: Entry): string | null => {
    const row = rowOfEntry(entry, report);
    if (row === null) return null;
    report.written++;
    const rest = foreignRest(entry, "openrath") as JsonPatch | undefined;
    return lineOf(rowRecord(row, rest, index++));
  };
  if (compaction !== undefined)
    for await (const entry of source.entries()) if (entry.id === compaction.id) yield write(entry) ?? "";
  let shown = compaction === undefined;
  for await (const entry of source.entries()) {
    const line = lines.take(entry);
    if (entry.type === "trailer") closed = entry;
    if (entry.type === "message" && entry.message.role === "assistant") usage = addUsage(usage, entry.message.usage);
    if (entry.id === compaction?.firstKeptEntryId || entry.id === compaction?.id) shown = true;
    if (["compaction", "leaf", "trailer"].includes(entry.type) || line === null) continue;
    if (isNode(entry) && !(shown && path.ids.has(entry.id)))
      report.omit(path.ids.has(entry.id) ? "entry before a compaction" : "entry on another branch");
    else if (line !== undefined) {
      report.verbatim++;
      yield `${line}\n`;
    } else {
      const written = write(entry);
      if (written !== null) yield written;
      else if (!isPlacement(entry)) report.omit(entry.type);
    }
  }
  // An imported file without a trailer was cut off, and is written without one again.
  if (closed !== null || noteOf(source.header, "openrath") === null) yield lineOf(trailerOf(closed, index, usage));
}

function headerOf({ header, foreignId }: ForeignSource): JsonObject {
  const { lineage, createdAt } = header;
  const plain = {
    record_type: "header",
    schema_version: 1,
    id: foreignId,
    created_at: createdAt.replace("Z", "+00:00"),
    parent_session_ids: lineage.parents.map(asUuid),
    lineage_operator: lineage.operator,
    lineage_kind: lineage.kind,
    lineage_extras: lineage.extras.map((pair) => [...pair]),
    sandbox_backend: null,
    sandbox_spec: null,
    sandbox_handle_id: null,
  };
  return { ...plain, ...noteOf(header, "openrath")?.rest, id: foreignId };
}

function rowRecord(
  { kind, payload, skein }: NonNullable<ReturnType<typeof rowOfEntry>>,
  rest: JsonPatch | undefined,
  index: number,
): JsonObject {
  const plain: JsonObject = { record_type: "chunk", index, kind, payload };
  if (rest !== undefined) return { ...applyPatch(plain, rest), index };
  return { ...plain, ...(skein === undefined ? {} : { skein }) };
}

function trailerOf(closed: Extract<Entry, { type: "trailer" }> | null, count: number, usage: Usage): JsonObject {
  const { inputTokens, outputTokens, totalTokens } = closed?.usage ?? usage;
  const plain = {
    record_type: "trailer",
    closed_at: (closed?.closedAt ?? new Date().toISOString()).replace("Z", "+00:00"),
    final_chunk_count: count,
    cumulative_usage: { prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: totalTokens },
  };
  const kept = closed === null ? undefined : foreignRest(closed, "openrath");
  return { ...plain, ...(isFields(kept) ? kept : {}), final_chunk_count: count };
}

function isPlacement(entry: Entry): boolean {
  return entry.type === "custom" && entry.customType === "openrath.placement";
}

function lineOf(value: JsonObject): string {
  return `${JSON.stringify(value)}\n`;
}
