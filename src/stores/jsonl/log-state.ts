import { type Entry, isNode } from "../../session/entry.ts";
import { SessionDamagedError, show } from "../../session/errors.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, stepHead, stepPath } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import { type SettingsNode, SettingsTable } from "../../session/settings.ts";
import { EntryFinder } from "./entry-finder.ts";
import { type Anchor, hashId } from "./entry-run.ts";
import { type BlockCut, checksum, CHECK_BYTES } from "./index-block.ts";
import type { LogIdentity } from "./log-access.ts";
import { parseLine, type RawLine } from "./log-line.ts";
import { INDEX_UNKNOWN, type IndexEnd, PendingIndex } from "./pending-index.ts";

/** How many entries that are not in the index are remembered of a log that is not in use. */
const RESTING_ENTRIES_MAX = 4096;

type Paths = Map<string, PathSummary | null>;

/** Where a fold of a log begins. */
export interface LogStart {
  readonly head: SessionHead;
  readonly end: Anchor;
  /** How many lines come before, the header's included. */
  readonly lines: number;
  /** What the settings of the head lead to. */
  readonly settings: readonly SettingsNode[];
  /** The last bytes before. */
  readonly tail: Buffer;
  readonly index: IndexEnd;
}

/** What a log adds up to as far as it has been read, and what was learned on the way. */
export class LogState {
  readonly identity: LogIdentity;
  finder: EntryFinder;
  pending: PendingIndex;
  #head: SessionHead;
  #end: number;
  #lines: number;
  #tail: Buffer;
  /** The settings that are known with all that they lead to: those of the last step that needed it. */
  #knownSettings: SettingsNode | null = null;

  constructor(identity: LogIdentity, start: LogStart) {
    this.identity = identity;
    this.finder = new EntryFinder(identity, tableOf(start.settings), { empty: start.end.seq === 0 });
    this.pending = new PendingIndex(start.end, start.index);
    this.#head = start.head;
    this.#end = start.end.offset;
    this.#lines = start.lines;
    this.#tail = start.tail;
    if (start.head.leafId !== null) this.finder.addPath(start.head.leafId, start.head.path);
  }

  get head(): SessionHead {
    return this.#head;
  }

  /** The position and the offset after the last whole line. */
  get end(): Anchor {
    return { seq: this.#head.version, offset: this.#end };
  }

  /** The offset after the last whole line. */
  get size(): number {
    return this.#end;
  }

  /** The last bytes before the end, by which it is known again. */
  get tail(): Buffer {
    return this.#tail;
  }

  /** Where the index could be written up to. */
  get cut(): BlockCut {
    const settings = this.finder.settings.chainOf(this.#head.path.settings) ?? [];
    const check = checksum(this.#tail);
    return {
      ...{ end: this.end, lines: this.#lines, head: this.#head, check },
      ...(settings.length === 0 ? {} : { settings }),
    };
  }

  /** Whether it is known, without reading anything, that no entry has that id. */
  surelyLacks(id: string): boolean {
    return this.finder.surelyLacks(id, this.#end);
  }

  /** Folds whole lines that follow. @throws {SessionDamagedError} at the first that cannot follow. */
  async fold(lines: readonly RawLine[]): Promise<void> {
    for (const line of lines) {
      const entries = parseLine(line, this.#head.version);
      if (typeof entries === "string") throw this.#damage(line, entries);
      if (!this.#foldAtLeaf(line, entries)) await this.#foldLine(line, entries);
    }
  }

  /** Takes over a line that was written, with what it makes of the head. */
  advance(line: RawLine, entries: readonly Entry[], head: SessionHead): void {
    this.finder.add(line, entries);
    for (const { id } of entries) this.pending.add(hashId(id), line.offset);
    this.#head = head;
    this.#end = line.offset + line.length;
    this.#lines += 1;
    this.#tail = tailOf(this.#tail, line.bytes);
    if (this.pending.isCutDue(this.#end)) this.pending.cut(this.cut);
  }

  /** Takes over the header of another version that the log's first line has now. */
  raise(header: SessionHeader): void {
    this.#head = { ...this.#head, header };
  }

  /** Sets the time of the last append, which the file system knows. */
  touch(updatedAt: string): void {
    if (this.#head.updatedAt !== updatedAt) this.#head = { ...this.#head, updatedAt };
  }

  /** Lets go of what can be found out again. */
  slim(): void {
    const settings = this.finder.settings.chainOf(this.#head.path.settings) ?? [];
    this.finder = new EntryFinder(this.identity, tableOf(settings), { empty: false });
    this.#knownSettings = null;
    if (this.#head.leafId !== null) this.finder.addPath(this.#head.leafId, this.#head.path);
    // Where the index ends, and what it lacks, is found out when it is written.
    if (this.pending.run.hashes.length > RESTING_ENTRIES_MAX) this.pending = new PendingIndex(this.end, INDEX_UNKNOWN);
  }

  /** Folds a single entry of which nothing has to be looked up, as nearly all are; else does nothing. */
  #foldAtLeaf(line: RawLine, entries: readonly Entry[]): boolean {
    const entry = entries[0] as Entry;
    if (entries.length > 1 || entry.type === "leaf" || this.finder.mayHold(entry.id)) return false;
    if (!isNode(entry)) this.advance(line, entries, stepHead(this.#head, entry, EMPTY_PATH, this.#head.updatedAt));
    else if (entry.parentId === this.#head.leafId && this.#canStep(entry)) {
      const path = stepPath(this.#head.path, entry, this.#head.header, this.finder.settings.at);
      this.finder.addPath(entry.id, path);
      if (entry.type === "variables") this.#knownSettings = path.settings;
      this.advance(line, entries, stepHead(this.#head, entry, path, this.#head.updatedAt));
    } else return false;
    return true;
  }

  /** Whether nothing has to be read to add an entry at the leaf. */
  #canStep({ type }: Entry): boolean {
    const { settings } = this.#head.path;
    return type !== "variables" || settings === this.#knownSettings || this.finder.settings.chainOf(settings) !== null;
  }

  async #foldLine(line: RawLine, entries: readonly Entry[]): Promise<void> {
    const own: Paths | null = entries.length === 1 ? null : new Map();
    let head = this.#head;
    for (const entry of entries) {
      if (await this.#holds(entry.id, own))
        throw this.#damage(line, `the id ${show(entry.id)} stands before it already`);
      const path = await this.#pathAfter(head, entry, line, own);
      own?.set(entry.id, isNode(entry) ? path : null);
      if (isNode(entry)) this.finder.addPath(entry.id, path);
      head = stepHead(head, entry, path, head.updatedAt);
    }
    this.advance(line, entries, head);
  }

  /** The path that a step with this entry leads to. */
  async #pathAfter(head: SessionHead, entry: Entry, line: RawLine, own: Paths | null): Promise<PathSummary> {
    if (isNode(entry)) {
      const parent = await this.#pathOf(head, entry.parentId, own);
      if (parent === undefined) throw this.#damage(line, `its parent ${show(entry.parentId)} does not stand before it`);
      if (parent === null) throw this.#damage(line, `its parent ${show(entry.parentId)} is a fact, not a node`);
      if (entry.type === "variables") await this.finder.learn(parent.settings, this.end);
      return stepPath(parent, entry, head.header, this.finder.settings.at);
    }
    if (entry.type !== "leaf") return EMPTY_PATH;
    const target = await this.#pathOf(head, entry.targetId, own);
    if (target === undefined)
      throw this.#damage(line, `it moves the leaf to ${show(entry.targetId)}, which does not stand before it`);
    if (target === null)
      throw this.#damage(line, `it moves the leaf to ${show(entry.targetId)}, which is a fact, not a node`);
    return target;
  }

  async #pathOf(head: SessionHead, id: string | null, own: Paths | null): Promise<PathSummary | null | undefined> {
    if (id === head.leafId) return head.path;
    const known = own?.get(id as string) ?? this.finder.knownPath(id);
    if (known !== undefined || id === null) return known;
    return own?.has(id) ? null : this.finder.pathOf(id, this.end);
  }

  async #holds(id: string, own: Paths | null): Promise<boolean> {
    if (own?.has(id)) return true;
    return this.finder.mayHold(id) && (await this.finder.find(id, this.end)) !== null;
  }

  #damage(line: RawLine, reason: string): SessionDamagedError {
    return new SessionDamagedError({
      path: this.identity.places.log,
      line: this.#lines + 1,
      offset: line.offset,
      reason,
    });
  }
}

function tableOf(nodes: readonly SettingsNode[]): SettingsTable {
  const table = new SettingsTable();
  for (const node of nodes) table.add(node);
  return table;
}

/** The last bytes of a log after a line. */
function tailOf(before: Buffer, line: Buffer): Buffer {
  const end = Buffer.allocUnsafe(CHECK_BYTES);
  const length = Math.min(line.length, CHECK_BYTES - 1);
  line.copy(end, CHECK_BYTES - 1 - length, line.length - length);
  end[CHECK_BYTES - 1] = 10;
  const missing = CHECK_BYTES - 1 - length;
  if (missing === 0) return end;
  const kept = Math.min(missing, before.length);
  before.copy(end, missing - kept, before.length - kept);
  return end.subarray(missing - kept);
}
