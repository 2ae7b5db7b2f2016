import { type Entry, isNode } from "../../session/log/entry.ts";
import { isTimestamp } from "../../session/log/header.ts";
import { checkName } from "../../session/id.ts";
import { entryProblem, parseJson, type RawLine } from "./log-line.ts";

/** An entry of a damaged file, or what is left of one. */
export interface RecoveredItem {
  /** Null when it cannot be read; then the rest says what is known of it. */
  readonly entry: Entry | null;
  readonly reason: string;
  readonly id: string | null;
  /** Undefined when it is not known. */
  readonly parentId: string | null | undefined;
  readonly timestamp: string | null;
  readonly line: number;
  readonly offset: number;
  readonly length: number;
}

const TEXT = String.raw`"(?:[^"\\]|\\.)*"`;
/** How each entry begins as it is written. Nothing inside an entry has a parent, so nothing inside is taken for one. */
const BEGINNINGS = new RegExp(`\\{"type":${TEXT},"id":${TEXT},"parentId":(?:null|${TEXT}),"timestamp":"`, "g");
/**
 * An id of the entry itself, and not of something in it: it stands after the type that begins the line, or before
 * the parent.
 */
const OWN_ID = new RegExp(`^\\[?\\{"type":${TEXT},"id":(${TEXT})|"id":(${TEXT}),"parentId":`);
const PARENT_ID = new RegExp(`"parentId":(null|${TEXT})`);
const TIMESTAMP = new RegExp(`"timestamp":(${TEXT})`);

/** The entries of a line of a damaged file: all of them when it is whole, else those that can be told apart. */
export function recoverLine(raw: RawLine, line: number): RecoveredItem[] {
  const value = parseJson(raw);
  if (typeof value !== "string") {
    const items: unknown[] = Array.isArray(value.json) ? value.json : [value.json];
    if (items.length === 0) return [lost(raw, line, "it is an empty list", raw.bytes)];
    return items.map((item) => judge(raw, line, item));
  }
  // One character a byte, so that positions in the text are positions in the line, whatever the bytes are.
  const text = raw.bytes.toString("latin1");
  const starts = [...text.matchAll(BEGINNINGS)].map(({ index }) => index);
  if (starts[0] !== 1) starts.unshift(1);
  if (!text.startsWith("[") || starts.length < 2) return [lost(raw, line, value, raw.bytes)];
  const items = starts.map((start, index) => {
    const next = starts[index + 1];
    // Between two entries is a comma, after the last one a bracket.
    const piece = raw.bytes.subarray(start, (next ?? text.length) - 1);
    const parsed = parseJson({ offset: 0, length: piece.length, bytes: piece });
    return typeof parsed === "string" ? lost(raw, line, parsed, piece) : judge(raw, line, parsed.json);
  });
  // When each piece is an entry, what is broken stands between them, and may have been one.
  return items.some(({ entry }) => entry === null) ? items : [...items, lost(raw, line, value, Buffer.alloc(0))];
}

function judge(raw: RawLine, line: number, item: unknown): RecoveredItem {
  const reason = entryProblem(item);
  if (reason !== null) return lost(raw, line, reason, Buffer.from(JSON.stringify(item)));
  const entry = item as Entry;
  const { id, parentId, timestamp } = entry;
  return { entry, reason: "", id, parentId, timestamp, line, offset: raw.offset, length: raw.length };
}

function lost({ offset, length }: RawLine, line: number, reason: string, bytes: Buffer): RecoveredItem {
  const text = bytes.toString("latin1");
  const [, first, second] = OWN_ID.exec(text) ?? [];
  const parent = PARENT_ID.exec(text)?.[1];
  const parentId = parent === "null" ? null : (nameIn(parent) ?? undefined);
  const time: unknown = valueIn(TIMESTAMP.exec(text)?.[1]);
  const timestamp = isTimestamp(time) ? time : null;
  return { entry: null, reason, id: nameIn(first ?? second), parentId, timestamp, line, offset, length };
}

function nameIn(json: string | undefined): string | null {
  const name = valueIn(json);
  try {
    checkName(name, "an entry");
    return name;
  } catch {
    return null;
  }
}

function valueIn(latin1: string | undefined): unknown {
  if (latin1 === undefined) return null;
  const bytes = Buffer.from(latin1, "latin1");
  const value = parseJson({ offset: 0, length: bytes.length, bytes });
  return typeof value === "string" ? null : value.json;
}

/** Gives lost entries without an id of their own the one that a later entry names as its parent and nobody has. */
export function nameLost(items: readonly RecoveredItem[], allIds: ReadonlySet<string>): Map<RecoveredItem, string> {
  const names = new Map<RecoveredItem, string>();
  const given = new Set<string>();
  const unnamed: RecoveredItem[] = [];
  for (const item of items) {
    if (item.entry === null) {
      if (item.id === null) unnamed.push(item);
      continue;
    }
    const { parentId } = item.entry;
    if (!isNode(item.entry) || parentId === null || allIds.has(parentId) || given.has(parentId)) continue;
    const nearest = unnamed.pop();
    if (nearest === undefined) continue;
    names.set(nearest, parentId);
    given.add(parentId);
  }
  return names;
}
