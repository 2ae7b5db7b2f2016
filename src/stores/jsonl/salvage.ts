import { fstatSync } from "node:fs";
import { basename } from "node:path";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { type Entry, isNode } from "../../session/log/entry.ts";
import { SessionDamagedError, show } from "../../session/errors.ts";
import {
  EMPTY_PATH,
  emptyHead,
  type PathSummary,
  type SessionHead,
  stepHead,
  stepPath,
} from "../../session/log/fold.ts";
import { createHeader, isTimestamp, type SessionHeader } from "../../session/log/header.ts";
import { checkName, isSessionId } from "../../session/id.ts";
import type { SettingsNode } from "../../session/log/settings.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import { MemoryLog } from "../memory/memory-log.ts";
import { parseHeader, readFirstLine } from "./log-header.ts";
import type { FileStamp } from "./log-index.ts";
import { entryProblem, parseJson, type RawLine } from "./log-line.ts";
import { parseFileName } from "./file-names.ts";
import { OpenFile, readLines } from "./read-lines.ts";

/** One damaged part of a file. */
export interface Damage {
  readonly line: number;
  readonly offset: number;
  readonly length: number;
  readonly reason: string;
  /** The id of the `lost` entry that replaces it; null for the header. */
  readonly entryId: string | null;
}

/** An entry of a damaged file, or the fields of it that could be read. */
interface RecoveredItem {
  /** Null if it cannot be read; then the other fields have the parts that are known. */
  readonly entry: Entry | null;
  readonly reason: string;
  readonly id: string | null;
  /** Undefined if it is not known. */
  readonly parentId: string | null | undefined;
  readonly timestamp: string | null;
  readonly line: number;
  readonly offset: number;
  readonly length: number;
}

const TEXT = String.raw`"(?:[^"\\]|\\.)*"`;
/** The beginning of an entry as the store writes it. No value inside an entry has a parent, so it matches entries only. */
const BEGINNINGS = new RegExp(`\\{"type":${TEXT},"id":${TEXT},"parentId":(?:null|${TEXT}),"timestamp":"`, "g");
/** The id of the entry itself, not of a value in it: it comes after the type at the line's beginning, or before the parent. */
const OWN_ID = new RegExp(`^\\[?\\{"type":${TEXT},"id":(${TEXT})|"id":(${TEXT}),"parentId":`);
const PARENT_ID = new RegExp(`"parentId":(null|${TEXT})`);
const TIMESTAMP = new RegExp(`"timestamp":(${TEXT})`);

/**
 * The readable entries of a damaged log. Each entry that cannot be read, or is invalid at its position, is replaced by a
 * `lost` node, whose parent is inferred from the entries around it.
 */
export class SalvagedLog extends MemoryLog {
  readonly damage: Damage[];
  #head: SessionHead;
  readonly #updatedAt: string;
  /** The ids of all readable entries, and of lost ones whose id could still be read. */
  readonly #allIds: ReadonlySet<string>;
  #time: string;
  /** Set after a lost entry, which may have moved the leaf. The parent of the next entry shows where the leaf was. */
  #leafIsUnsure = false;

  /** `damage` is the damage of the header. */
  constructor(
    header: SessionHeader,
    items: readonly RecoveredItem[],
    { damage, updatedAt }: { readonly damage: readonly Damage[]; readonly updatedAt: string },
  ) {
    super();
    this.damage = [...damage];
    this.#head = emptyHead(header);
    this.#updatedAt = updatedAt;
    this.#time = header.createdAt;
    this.#allIds = new Set(items.flatMap(({ id }) => id ?? []));
    const namesOfLost = nameLost(items, this.#allIds);
    for (const item of items) this.#add(item, namesOfLost.get(item) ?? item.id);
    freezeDeep(this.#head);
  }

  get head(): SessionHead {
    return this.#head;
  }

  /** The entries of a range in one page. */
  readPages(range: ReadRange): Entry[][] {
    return [[...this.read(range)]];
  }

  #pathOf(id: string | null): PathSummary | null {
    return id === null ? EMPTY_PATH : (this.find(id)?.path ?? null);
  }

  #add(item: RecoveredItem, id: string | null): void {
    this.#time = item.timestamp ?? this.#time;
    const { entry } = item;
    if (entry === null) {
      this.#addLost(item, item.reason, id, item.parentId);
      return;
    }
    if (this.find(entry.id) !== undefined) {
      this.#addLost(item, `the id ${show(entry.id)} is already used by an earlier entry`, null, entry.parentId);
      return;
    }
    if (this.#leafIsUnsure) this.#followLeaf(item, entry);
    const problem = this.#positionProblem(item, entry);
    if (problem === null) this.#push(entry);
    else this.#addLost(item, problem, entry.id, undefined);
  }

  /** Why a readable entry is invalid at its position, or null. If its parent is missing, a `lost` node is added for it. */
  #positionProblem(item: RecoveredItem, entry: Entry): string | null {
    if (entry.type === "leaf") {
      const known = this.#pathOf(entry.targetId) !== null;
      return known ? null : `it moves the leaf to ${show(entry.targetId)}, which does not come before it`;
    }
    if (!isNode(entry) || entry.parentId === null || this.#pathOf(entry.parentId) !== null) return null;
    if (this.find(entry.parentId) !== undefined) return `its parent ${show(entry.parentId)} is a fact, not a node`;
    const reason = `its parent ${show(entry.parentId)} does not come before it`;
    if (this.#allIds.has(entry.parentId)) return reason;
    this.#addLost({ ...item, length: 0 }, reason, entry.parentId, undefined);
    return null;
  }

  #addLost(
    { line, offset, length }: RecoveredItem,
    reason: string,
    id: string | null,
    parentId: string | null | undefined,
  ): void {
    const known = parentId !== undefined && this.#pathOf(parentId) !== null;
    const entryId = id !== null && this.find(id) === undefined ? id : this.#freeId(`lost-${line}`);
    const stamp = { id: entryId, timestamp: this.#time, seq: 0 };
    this.#push({ type: "lost", ...stamp, parentId: known ? parentId : this.#head.leafId, reason });
    this.#leafIsUnsure = true;
    this.damage.push({ line, offset, length, reason, entryId });
  }

  /** Adds a `leaf` entry if the parent of the entry after a lost one shows that the leaf had moved. */
  #followLeaf({ line }: RecoveredItem, { parentId: targetId }: Entry): void {
    if (this.#pathOf(targetId) === null) return;
    this.#leafIsUnsure = false;
    const parentId = this.#head.leafId;
    if (targetId === parentId) return;
    const id = this.#freeId(`lost-${line}-leaf`);
    this.#push({ type: "leaf", id, parentId, timestamp: this.#time, seq: 0, targetId });
  }

  #push(entry: Entry): void {
    (entry as { seq: number }).seq = this.#head.version;
    const parent = this.#pathOf(entry.parentId) ?? EMPTY_PATH;
    const settingsAt = (seq: number): SettingsNode => this.settingsAt(seq);
    const path = isNode(entry) ? stepPath(parent, entry, this.#head.header, settingsAt) : null;
    const target = entry.type === "leaf" ? this.#pathOf(entry.targetId) : null;
    this.#head = stepHead(this.#head, entry, path ?? target ?? EMPTY_PATH, this.#updatedAt);
    this.add([{ entry, path, head: this.#head }]);
  }

  #freeId(wanted: string): string {
    let id = wanted;
    for (let count = 2; this.find(id) !== undefined || this.#allIds.has(id); count++) id = `${wanted}-${count}`;
    return id;
  }
}

/** Reads everything readable of a damaged file, without changing the file. */
export function salvage(fd: number, path: string, stamp: FileStamp): SalvagedLog {
  const damage: Damage[] = [];
  const first = readFirstLine(fd);
  const whole = first.length > first.bytes.length;
  const items: RecoveredItem[] = [];
  let line = 1;
  for (const lines of readLines(fd, whole ? first.length : 0, stamp.size)) {
    for (const raw of lines) items.push(...recoverLine(raw, ++line));
  }
  const header = salvageHeader(first, path, items, damage);
  return new SalvagedLog(header, items, { damage, updatedAt: new Date(stamp.mtimeMs).toISOString() });
}

/** The damaged parts of a file. */
export function readDamage(path: string): readonly Damage[] {
  using file = new OpenFile(path);
  return salvage(file.fd, path, fstatSync(file.fd)).damage;
}

/** The header of a damaged file. If it cannot be read, a header is made from the file's name and the entries. */
function salvageHeader(first: RawLine, path: string, items: readonly RecoveredItem[], damage: Damage[]): SessionHeader {
  try {
    return parseHeader(first, path);
  } catch (error) {
    if (!(error instanceof SessionDamagedError)) throw error;
    const text = first.bytes.toString("utf8");
    const name = parseFileName(basename(path));
    const id = name?.id ?? /"id":"([^"\\]+)"/.exec(text)?.[1];
    const firstTime = items.find((item) => item.entry !== null)?.entry?.timestamp;
    const createdAt = name?.createdAt ?? firstTime;
    if (!isSessionId(id) || (firstTime === undefined && items.length > 0)) throw error;
    damage.push({ line: 1, offset: 0, length: first.length, reason: error.reason, entryId: null });
    return createHeader({ id, ...(createdAt === undefined ? {} : { createdAt }) });
  }
}

/** The entries of a line of a damaged file: all of them if the line is valid, otherwise those that can be found in it. */
function recoverLine(raw: RawLine, line: number): RecoveredItem[] {
  const value = parseJson(raw);
  if (typeof value !== "string") {
    const items: unknown[] = Array.isArray(value.json) ? value.json : [value.json];
    if (items.length === 0) return [lost(raw, line, "it is an empty list", raw.bytes)];
    return items.map((item) => checkItem(raw, line, item));
  }
  // In latin1 each byte is one character, so positions in the text are offsets in the line.
  const text = raw.bytes.toString("latin1");
  const starts = [...text.matchAll(BEGINNINGS)].map(({ index }) => index);
  if (starts[0] !== 1) starts.unshift(1);
  if (!text.startsWith("[") || starts.length < 2) return [lost(raw, line, value, raw.bytes)];
  const items = starts.map((start, index) => {
    const next = starts[index + 1];
    // A comma follows each entry, and a bracket the last one.
    const piece = raw.bytes.subarray(start, (next ?? text.length) - 1);
    const parsed = parseJson({ offset: 0, length: piece.length, bytes: piece });
    return typeof parsed === "string" ? lost(raw, line, parsed, piece) : checkItem(raw, line, parsed.json);
  });
  // If every piece is an entry, the damage is between them, and may have been an entry.
  return items.some(({ entry }) => entry === null) ? items : [...items, lost(raw, line, value, Buffer.alloc(0))];
}

function checkItem(raw: RawLine, line: number, item: unknown): RecoveredItem {
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

/** Finds ids for lost entries whose id is unknown: an id that a later entry names as its parent and that no entry has. */
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
