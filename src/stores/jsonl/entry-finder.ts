import type { FileHandle } from "node:fs/promises";
import { type Entry, isNode } from "../../session/entry.ts";
import { type SessionDamagedError, show } from "../../session/errors.ts";
import { EMPTY_PATH, type PathSummary, stepPath } from "../../session/fold.ts";
import type { SettingsNode, SettingsTable } from "../../session/settings.ts";
import { type Anchor, hashId } from "./entry-run.ts";
import { EntryTable, type Span } from "./entry-table.ts";
import { checksum, CHECK_BYTES, decodeAnchors, decodeHashes, type IndexBlock } from "./index-block.ts";
import { readBlocks } from "./index-file.ts";
import { damageAt, type LogIdentity, StaleView, withLog } from "./log-access.ts";
import { parseLine, type RawLine } from "./log-line.ts";
import { PathCache } from "./path-cache.ts";
import { readChunk, readLines } from "./read-lines.ts";

const SPANS_MAX = 8;

/**
 * Finds entries of a log by id, and the paths of its nodes. What it needs is loaded when it is first asked: from
 * the index as far as that goes, from the log for the rest. Every find is checked in the log.
 */
export class EntryFinder {
  /** The settings that are known without reading. */
  readonly settings: SettingsTable;
  readonly #identity: LogIdentity;
  readonly #paths = new PathCache();
  #table: EntryTable | null;
  #trustsIndex = true;
  #loading: Promise<unknown> = Promise.resolve();
  #spans: { readonly span: Span; readonly entries: readonly Entry[] }[] = [];

  /** `empty`: no entry of the log has been read yet, so that all will be told. */
  constructor(identity: LogIdentity, settings: SettingsTable, options: { readonly empty: boolean }) {
    this.#identity = identity;
    this.settings = settings;
    this.#table = options.empty ? new EntryTable(identity.headerEnd) : null;
  }

  /** Finds out anew, from the log alone. */
  distrustIndex(): void {
    this.#trustsIndex = false;
    this.#table = null;
    this.#spans = [];
  }

  /** Tells of the next line's entries. */
  add(line: { readonly offset: number; readonly length: number }, entries: readonly Entry[]): void {
    // A table that does not reach the line is extended when it is next asked.
    if (this.#table?.end !== line.offset) return;
    for (const { id } of entries) this.#table.add(hashId(id), line.offset);
    this.#table.endAt(line.offset + line.length);
  }

  /** Tells of a node's path. */
  addPath(id: string, path: PathSummary): void {
    this.#paths.set(id, path);
    this.settings.add(path.settings);
  }

  /** What the `variables` node at a position holds, in a log that reaches up to `end`. */
  async settingsAt(seq: number, end: Anchor): Promise<SettingsNode> {
    if (!this.settings.has(seq)) {
      const table = await this.#load(end);
      await withLog(this.#identity, async (handle) => {
        await this.#walk(handle, table, (await this.#at(handle, table, seq)).id, { fromRoot: true });
      });
    }
    return this.settings.at(seq);
  }

  /** Finds out what settings lead to, so that all of it is known. */
  async learn(last: SettingsNode | null, end: Anchor): Promise<void> {
    let node = last;
    while (node !== null && node.before !== null) node = await this.settingsAt(node.before, end);
  }

  /** The path of a node, where it is known without reading. */
  knownPath(id: string | null): PathSummary | undefined {
    return this.#paths.get(id);
  }

  /** Whether the log may have an entry of that id; without the table, whether a recent node has it. */
  mayHold(id: string): boolean {
    return this.#table === null ? this.#paths.get(id) !== undefined : this.#table.mayHave(hashId(id));
  }

  /** Whether it is known, without reading anything, that no entry up to that offset has that id. */
  surelyLacks(id: string, end: number): boolean {
    return this.#table !== null && this.#table.end >= end && !this.#table.mayHave(hashId(id));
  }

  /** The entry of that id in a log that reaches up to `end`, or null. */
  async find(id: string, end: Anchor): Promise<Entry | null> {
    const table = await this.#load(end);
    if (!table.mayHave(hashId(id))) return null;
    return withLog(this.#identity, (handle) => this.#search(handle, table, id));
  }

  /** The path of the node of that id; null for a fact, undefined when there is no such entry. */
  async pathOf(id: string, end: Anchor): Promise<PathSummary | null | undefined> {
    const known = this.#paths.get(id);
    if (known !== undefined) return known;
    const table = await this.#load(end);
    if (!table.mayHave(hashId(id))) return undefined;
    return withLog(this.#identity, async (handle) => {
      const known = await this.#walk(handle, table, id, { fromRoot: false });
      return known === "unknown" ? ((await this.#walk(handle, table, id, { fromRoot: true })) as PathSummary) : known;
    });
  }

  /** The place of a line at or before a position, once the table is loaded. */
  async anchorBefore(seq: number, end: Anchor): Promise<Anchor> {
    const { seq: at, offset } = (await this.#load(end)).spanOf(seq);
    return { seq: at, offset };
  }

  /** The place of a line at or after a position, once the table is loaded. */
  async anchorAfter(seq: number, end: Anchor): Promise<Anchor> {
    const { seq: at, offset, endSeq, endOffset } = (await this.#load(end)).spanOf(seq);
    return at === seq ? { seq: at, offset } : { seq: endSeq, offset: endOffset };
  }

  /**
   * The path of a node: steps down from the nearest ancestor whose path is known, or from the root. `"unknown"` where
   * settings above that ancestor would be needed, which only a walk from the root brings.
   */
  async #walk(
    handle: FileHandle,
    table: EntryTable,
    id: string,
    { fromRoot }: { readonly fromRoot: boolean },
  ): Promise<PathSummary | null | undefined | "unknown"> {
    const pathOf = (of: string | null): PathSummary | undefined =>
      fromRoot && of !== null ? undefined : this.#paths.get(of);
    const found = await this.#search(handle, table, id);
    if (found === null) return undefined;
    if (!isNode(found)) return null;
    const positions = [found.seq];
    let parentId = found.parentId;
    let path = pathOf(parentId);
    // A parent stands before its child, so that the walk ends.
    while (path === undefined) {
      const parent = await this.#search(handle, table, parentId as string);
      const before = positions.at(-1) as number;
      if (parent === null || parent.seq >= before)
        throw await this.#orphaned(handle, table, before, parentId as string);
      positions.push(parent.seq);
      parentId = parent.parentId;
      path = pathOf(parentId);
    }
    for (const seq of positions.reverse()) {
      const node = await this.#at(handle, table, seq);
      if (node.type === "variables" && this.settings.chainOf(path?.settings ?? null) === null) return "unknown";
      path = stepPath(path ?? EMPTY_PATH, node, this.#identity.header, this.settings.at);
      this.addPath(node.id, path);
    }
    return path;
  }

  async #orphaned(handle: FileHandle, table: EntryTable, seq: number, parentId: string): Promise<SessionDamagedError> {
    const { offset, endOffset } = table.spanOf(seq);
    const line = { offset, length: endOffset - offset, bytes: Buffer.alloc(0) };
    return damageAt(handle, this.#identity.places.log, line, `its parent ${show(parentId)} does not stand before it`);
  }

  async #search(handle: FileHandle, table: EntryTable, id: string): Promise<Entry | null> {
    for (const seq of table.candidates(hashId(id))) {
      const entry = await this.#at(handle, table, seq);
      if (entry.id === id) return entry;
    }
    return null;
  }

  async #at(handle: FileHandle, table: EntryTable, seq: number): Promise<Entry> {
    const span = table.spanOf(seq);
    const known = this.#spans.find(
      (each) => each.span.offset === span.offset && each.span.endOffset === span.endOffset,
    );
    const entries = known?.entries ?? (await this.#readSpan(handle, table, span));
    return entries[seq - span.seq] as Entry;
  }

  async #readSpan(handle: FileHandle, table: EntryTable, span: Span): Promise<readonly Entry[]> {
    const entries: Entry[] = [];
    for await (const lines of readLines(handle, span.offset, span.endOffset)) {
      for (const line of lines) {
        const parsed = parseLine(line, span.seq + entries.length);
        if (typeof parsed === "string") throw await damageAt(handle, this.#identity.places.log, line, parsed);
        for (const entry of parsed) entries.push(entry);
      }
    }
    const fits =
      entries.length === span.endSeq - span.seq && entries.every(({ id, seq }) => hashId(id) === table.hashAt(seq));
    if (!fits) throw new StaleView("The index does not fit the log.");
    this.#spans = [{ span, entries }, ...this.#spans.slice(0, SPANS_MAX - 1)];
    return entries;
  }

  async #load(end: Anchor): Promise<EntryTable> {
    const reaches = (): boolean => this.#table !== null && this.#table.end >= end.offset;
    if (!reaches()) {
      const turn = this.#loading.then(() =>
        reaches() ? undefined : withLog(this.#identity, (handle) => this.#extend(handle, end)),
      );
      this.#loading = turn.catch(() => {});
      await turn;
    }
    return this.#table as EntryTable;
  }

  /** Reads what the table does not have yet. */
  async #extend(handle: FileHandle, end: Anchor): Promise<void> {
    this.#table ??= await this.#loadIndex(handle, end);
    const table = this.#table;
    for await (const lines of readLines(handle, table.end, end.offset)) {
      for (const line of lines) await this.#tell(handle, table, line);
    }
    const whole = table.end > end.offset || (table.end === end.offset && table.count === end.seq);
    if (!whole) throw new StaleView("The log is not what it was.");
  }

  async #loadIndex(handle: FileHandle, end: Anchor): Promise<EntryTable> {
    const table = new EntryTable(this.#identity.headerEnd, end.seq);
    if (!this.#trustsIndex) return table;
    const blocks = (await readBlocks(this.#identity.places.index)).filter((block) => block.end.offset <= end.offset);
    if (!(await this.#fits(handle, blocks))) return table;
    for (const block of blocks) {
      table.addAll(decodeHashes(block), decodeAnchors(block), block.end.offset);
      if (block.head.leafId !== null) this.#paths.keep(block.head.leafId, block.head.path);
    }
    return table;
  }

  async #tell(handle: FileHandle, table: EntryTable, line: RawLine): Promise<void> {
    const entries = parseLine(line, table.count);
    if (typeof entries === "string") throw await damageAt(handle, this.#identity.places.log, line, entries);
    for (const { id } of entries) {
      if (!table.mayHave(hashId(id)) || (await this.#search(handle, table, id)) === null) continue;
      throw await damageAt(handle, this.#identity.places.log, line, `the id ${show(id)} stands before it already`);
    }
    for (const { id } of entries) table.add(hashId(id), line.offset);
    table.endAt(line.offset + line.length);
  }

  /** Whether the blocks cover the beginning of this very log. */
  async #fits(handle: FileHandle, blocks: readonly IndexBlock[]): Promise<boolean> {
    const [first, last] = [blocks[0], blocks.at(-1)];
    if (first === undefined || last === undefined) return false;
    const { headerEnd, headerCheck, ino } = this.#identity;
    if (first.from.seq !== 0 || first.from.offset !== headerEnd) return false;
    if (last.headerCheck !== headerCheck || last.stamp.ino !== ino) return false;
    const start = Math.max(0, last.end.offset - CHECK_BYTES);
    return checksum(await readChunk(handle, start, last.end.offset - start)) === last.check;
  }
}
