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
import { createHeader, type SessionHeader } from "../../session/log/header.ts";
import { isSessionId } from "../../session/id.ts";
import type { SettingsNode } from "../../session/log/settings.ts";
import type { ReadRange } from "../../session/store-driver.ts";
import { MemoryLog } from "../memory/memory-log.ts";
import { parseHeader, readFirstLine } from "./log-header.ts";
import type { FileStamp } from "./log-index.ts";
import type { RawLine } from "./log-line.ts";
import { parseFileName } from "./file-names.ts";
import { OpenFile, readLines } from "./read-lines.ts";
import { nameLost, type RecoveredItem, recoverLine } from "./recover-line.ts";

/** One part of a file that cannot be read as it is. */
export interface Damage {
  readonly line: number;
  readonly offset: number;
  readonly length: number;
  readonly reason: string;
  /** The id of the entry that stands in the lost one's place; null for the header. */
  readonly entryId: string | null;
}

/**
 * A damaged log as far as it can be read, with a `lost` node in the place of each entry that cannot be read or cannot stand
 * where it does, chained where its neighbours say it was.
 */
export class SalvagedLog extends MemoryLog {
  readonly damage: Damage[];
  #head: SessionHead;
  readonly #updatedAt: string;
  /** The ids of all entries that can be read, and of lost ones that are sure of theirs. */
  readonly #allIds: ReadonlySet<string>;
  #time: string;
  /** A lost entry may have moved the leaf, so the next entry says where it stood. */
  #leafIsUnsure = false;

  /** `damage` is that of the header. */
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

  /** The entries of a range, all on one page. */
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
      this.#addLost(item, `the id ${show(entry.id)} stands before it already`, null, entry.parentId);
      return;
    }
    if (this.#leafIsUnsure) this.#followLeaf(item, entry);
    const problem = this.#positionProblem(item, entry);
    if (problem === null) this.#push(entry);
    else this.#addLost(item, problem, entry.id, undefined);
  }

  /** What keeps a readable entry from standing where it does. A parent that is nowhere is put before it. */
  #positionProblem(item: RecoveredItem, entry: Entry): string | null {
    if (entry.type === "leaf") {
      const known = this.#pathOf(entry.targetId) !== null;
      return known ? null : `it moves the leaf to ${show(entry.targetId)}, which does not stand before it`;
    }
    if (!isNode(entry) || entry.parentId === null || this.#pathOf(entry.parentId) !== null) return null;
    if (this.find(entry.parentId) !== undefined) return `its parent ${show(entry.parentId)} is a fact, not a node`;
    const reason = `its parent ${show(entry.parentId)} does not stand before it`;
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

  /** Moves the leaf to where an entry after a lost one says it was. */
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

/** Reads all that can be read of a damaged file. The file is not touched. */
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

/** What cannot be read of a file. */
export function readDamage(path: string): readonly Damage[] {
  using file = new OpenFile(path);
  return salvage(file.fd, path, fstatSync(file.fd)).damage;
}

/** The header of a damaged file: its own, or one made of what the file's name and the entries tell. */
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
