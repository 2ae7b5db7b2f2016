import { type Entry, isNode } from "../../session/entry.ts";
import { show } from "../../session/errors.ts";
import { EMPTY_PATH, type PathSummary, stepPath } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import { isTimestamp } from "../../session/header.ts";
import { checkName } from "../../session/id.ts";
import { SettingsTable } from "../../session/settings.ts";
import { entryProblem, parseJson, type RawLine } from "./log-line.ts";
import type { Damage } from "./salvage.ts";

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
  // One character a byte, so that places in the text are places in the line, whatever the bytes are.
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

/** The entries of a damaged log as they hang together, and the paths of its nodes. */
export interface RelinkedLog {
  readonly entries: readonly Entry[];
  readonly paths: ReadonlyMap<string, PathSummary>;
  readonly settings: SettingsTable;
}

/**
 * Puts what was recovered in a form that folds: a `lost` node for each entry that cannot be read or cannot stand
 * where it does, chained where its neighbours say it was. Each one is added to `damage`.
 */
export function relink(items: readonly RecoveredItem[], header: SessionHeader, damage: Damage[]): RelinkedLog {
  const links = new Links(items, header, damage);
  for (const item of items) links.add(item);
  return links;
}

class Links implements RelinkedLog {
  readonly entries: Entry[] = [];
  readonly paths = new Map<string, PathSummary>();
  readonly settings = new SettingsTable();
  readonly #damage: Damage[];
  readonly #header: SessionHeader;
  readonly #ids = new Set<string>();
  /** The ids of all entries that can be read, and of lost ones that are sure of theirs. */
  readonly #allIds: ReadonlySet<string>;
  readonly #namesOfLost: ReadonlyMap<RecoveredItem, string>;
  #leafId: string | null = null;
  #time: string;
  /** A lost entry may have moved the leaf, so the next entry says where it stood. */
  #leafIsUnsure = false;

  constructor(items: readonly RecoveredItem[], header: SessionHeader, damage: Damage[]) {
    this.#damage = damage;
    this.#header = header;
    this.#time = header.createdAt;
    this.#allIds = new Set(items.flatMap(({ id }) => id ?? []));
    this.#namesOfLost = nameLost(items, this.#allIds);
  }

  add(item: RecoveredItem): void {
    this.#time = item.timestamp ?? this.#time;
    const { entry } = item;
    if (entry === null) {
      this.#addLost(item, item.reason, item.id ?? this.#namesOfLost.get(item) ?? null, item.parentId);
      return;
    }
    if (this.#ids.has(entry.id)) {
      this.#addLost(item, `the id ${show(entry.id)} stands before it already`, null, entry.parentId);
      return;
    }
    if (this.#leafIsUnsure) this.#followLeaf(item, entry);
    const problem = this.#placeProblem(item, entry);
    if (problem === null) this.#push(entry);
    else this.#addLost(item, problem, entry.id, undefined);
  }

  /** What keeps a readable entry from standing where it does. A parent that is nowhere is put before it. */
  #placeProblem(item: RecoveredItem, entry: Entry): string | null {
    if (entry.type === "leaf") {
      const known = entry.targetId === null || this.paths.has(entry.targetId);
      return known ? null : `it moves the leaf to ${show(entry.targetId)}, which does not stand before it`;
    }
    if (!isNode(entry) || entry.parentId === null || this.paths.has(entry.parentId)) return null;
    if (this.#ids.has(entry.parentId)) return `its parent ${show(entry.parentId)} is a fact, not a node`;
    const reason = `its parent ${show(entry.parentId)} does not stand before it`;
    if (this.#allIds.has(entry.parentId)) return reason;
    this.#addLost({ ...item, length: 0 }, reason, entry.parentId, undefined);
    return null;
  }

  #addLost(item: RecoveredItem, reason: string, id: string | null, parentId: string | null | undefined): void {
    const known = parentId === null || (parentId !== undefined && this.paths.has(parentId));
    const lost = {
      type: "lost" as const,
      id: id !== null && !this.#ids.has(id) ? id : this.#freeId(`lost-${item.line}`),
      parentId: known ? (parentId as string | null) : this.#leafId,
      timestamp: this.#time,
      seq: 0,
      reason,
    };
    this.#push(lost);
    this.#leafIsUnsure = true;
    this.#damage.push({ line: item.line, offset: item.offset, length: item.length, reason, entryId: lost.id });
  }

  /** Moves the leaf to where an entry after a lost one says it was. */
  #followLeaf(item: RecoveredItem, { parentId }: Entry): void {
    if (parentId !== null && !this.paths.has(parentId)) return;
    this.#leafIsUnsure = false;
    if (parentId === this.#leafId) return;
    const id = this.#freeId(`lost-${item.line}-leaf`);
    this.#push({ type: "leaf", id, parentId: this.#leafId, timestamp: this.#time, seq: 0, targetId: parentId });
  }

  #push(entry: Entry): void {
    (entry as { seq: number }).seq = this.entries.length;
    this.entries.push(entry);
    this.#ids.add(entry.id);
    if (isNode(entry)) {
      const parent = entry.parentId === null ? EMPTY_PATH : (this.paths.get(entry.parentId) as PathSummary);
      const path = stepPath(parent, entry, this.#header, this.settings.at);
      this.settings.add(path.settings);
      this.paths.set(entry.id, path);
      if (entry.parentId === this.#leafId) this.#leafId = entry.id;
    } else if (entry.type === "leaf") {
      this.#leafId = entry.targetId;
    }
  }

  #freeId(wanted: string): string {
    let id = wanted;
    for (let count = 2; this.#ids.has(id) || this.#allIds.has(id); count++) id = `${wanted}-${count}`;
    return id;
  }
}

/** Gives lost entries without an id of their own the one that a later entry names as its parent and nobody has. */
function nameLost(items: readonly RecoveredItem[], allIds: ReadonlySet<string>): Map<RecoveredItem, string> {
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
