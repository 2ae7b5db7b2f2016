import type { JsonObject } from "../../../internal/json.ts";
import { type Entry, isNode } from "../../../session/log/entry.ts";
import type { ForeignSource } from "../foreign-format.ts";
import { noteOf } from "../foreign-note.ts";
import type { WriteReport } from "../foreign-report.ts";
import { ForeignTree } from "../foreign-tree.ts";
import { isFields, textIn } from "../foreign-values.ts";
import { KeptLines } from "../kept-line.ts";
import { foreignRest, type JsonPatch, applyPatch } from "../json-patch.ts";
import { piOfEntry } from "./pi-entry.ts";
import { piOfMessage } from "./pi-message.ts";
import { LEAF_MARK } from "./read-pi.ts";

/** The format version that is written; every version of pi reads it. */
const VERSION = 3;

/** Writes a session as a file of pi, line by line. */
export async function* writePi(source: ForeignSource, report: WriteReport): AsyncGenerator<string, void, undefined> {
  const { header, leafId, cwd, foreignId } = source;
  const note = noteOf(header, "pi");
  const own = note === null || note.version === "4" ? {} : note.rest;
  yield lineOf({ ...own, type: "session", version: VERSION, id: foreignId, timestamp: header.createdAt, cwd });
  const tree = new ForeignTree();
  const kept = new KeptLines("pi");
  let last: string | null = null;
  for await (const entry of source.entries()) {
    const line = kept.take(entry);
    if (line !== undefined) {
      const verbatim = line === null ? null : verbatimOf(line);
      if (verbatim === null) {
        tree.skip(entry);
        if (line !== null) report.omit("line of another version of pi");
      } else {
        report.verbatim++;
        yield `${line}\n`;
        tree.put(entry, verbatim);
        last = entry.id;
      }
      continue;
    }
    const written = writtenEntry(entry, tree, report);
    if (written === null) {
      if (isNode(entry)) tree.skip(entry);
      if (entry.type !== "leaf") report.omit(entry.type);
      continue;
    }
    report.written++;
    yield lineOf(written);
    if (!isNode(entry)) continue;
    tree.put(entry, entry.id);
    last = entry.id;
  }
  if (source.edits.length > 0 && leafId !== null) {
    yield* editLines(source, tree, report);
    return;
  }
  // pi resumes after the last entry of the file; the mark makes that entry a child of the leaf.
  if (last === leafId || last === null) return;
  const mark = { type: "custom", id: "skein-leaf", parentId: leafId === null ? null : (tree.idOf(leafId) ?? null) };
  yield lineOf({ ...mark, timestamp: new Date(header.createdAt).toISOString(), customType: LEAF_MARK });
}

/** The edits as a chain below the leaf: pi resumes after the last one, and each has its effect on the path to it. */
function* editLines(
  { header, leafId, edits }: ForeignSource,
  tree: ForeignTree,
  report: WriteReport,
): Generator<string, void, undefined> {
  let parentId = tree.idOf(leafId as string) ?? null;
  const timestamp = new Date(header.createdAt).toISOString();
  for (const [index, { targetId, message }] of edits.entries()) {
    const target = tree.idOf(targetId);
    const written = message === null ? null : piOfMessage(message, 0, report);
    if (target === undefined || target === null || (written === null && message !== null)) continue;
    const replacement = written === null ? null : { content: written.content ?? [] };
    const id = `skein-edit-${index + 1}`;
    report.written++;
    yield lineOf({ type: "context_edit", id, parentId, timestamp, targetId: target, replacement });
    parentId = id;
  }
}

function writtenEntry(entry: Entry, tree: ForeignTree, report: WriteReport): JsonObject | null {
  const body = piOfEntry(entry, report);
  if (body === null) return null;
  const parentId = tree.parentOf(entry);
  const rest = foreignRest(entry, "pi") as JsonPatch | undefined;
  const { id, timestamp } = entry;
  const whole = applyPatch<JsonObject>({ ...body, id, parentId, timestamp }, rest);
  return { ...whole, parentId };
}

/** The id of a kept line; null if the line is not valid in the version that is written. */
function verbatimOf(line: string): string | null {
  const value: unknown = JSON.parse(line);
  return isFields(value) && typeof value.type === "string" && value.kind === undefined
    ? (textIn(value.id) ?? null)
    : null;
}

function lineOf(value: JsonObject): string {
  return `${JSON.stringify(value)}\n`;
}
