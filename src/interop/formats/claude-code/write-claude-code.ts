import type { JsonObject } from "../../../internal/json.ts";
import { type Entry, isNode } from "../../../session/log/entry.ts";
import type { ForeignSource } from "../foreign-format.ts";
import { uuidFrom } from "../foreign-id.ts";
import { noteOf } from "../foreign-note.ts";
import type { WriteReport } from "../foreign-report.ts";
import { ForeignTree } from "../foreign-tree.ts";
import { isFields, textIn } from "../foreign-values.ts";
import { KeptLines } from "../kept-line.ts";
import { type LineContext, leafMark, linesOfEntry, withRestOfLines } from "./claude-code-line.ts";

/** The version that sessions of other programs claim to be written by. */
const VERSION = "2.1.197";

/** A session as a file of Claude Code, line by line. */
export async function* writeClaudeCode(
  source: ForeignSource,
  report: WriteReport,
): AsyncGenerator<string, void, undefined> {
  const note = noteOf(source.header, "claude-code");
  const common = isFields(note?.rest?.common) ? note.rest.common : { userType: "external", version: VERSION };
  const writer = new LineWriter(
    { sessionId: source.foreignId, common: { ...common, cwd: source.cwd } },
    note?.id,
    report,
  );
  for await (const entry of source.entries()) {
    for (const line of writer.linesOf(entry)) yield `${line}\n`;
  }
  const mark = writer.leafMark(source.leafId);
  if (mark !== null) yield `${JSON.stringify(mark)}\n`;
}

class LineWriter {
  /** The last line that hangs on the tree. */
  #last: string | null = null;
  #lastTime = 0;
  readonly #context: LineContext;
  readonly #imported: string | undefined;
  readonly #report: WriteReport;
  readonly #tree = new ForeignTree();
  readonly #kept = new KeptLines("claude-code");
  /** The first line of each entry, for compactions that keep from there on. */
  readonly #firstLines = new Map<string, string>();
  readonly #uuids = new Set<string>();

  constructor(context: LineContext, imported: string | undefined, report: WriteReport) {
    this.#context = context;
    this.#imported = imported;
    this.#report = report;
  }

  /** The program goes on after the latest line: one that says nothing stands where the session does, if that is elsewhere. */
  leafMark(leafId: string | null): JsonObject | null {
    const leaf = leafId === null ? null : (this.#tree.idOf(leafId) ?? null);
    if (leaf === this.#last || this.#last === null) return null;
    const timestamp = new Date(this.#lastTime + 1).toISOString();
    return leafMark({ uuid: uuidFrom(`${this.#last}.${leaf}.leaf`), parentUuid: leaf, timestamp }, this.#context);
  }

  linesOf(entry: Entry): readonly string[] {
    this.#lastTime = Math.max(this.#lastTime, Date.parse(entry.timestamp));
    const line = this.#kept.take(entry);
    if (line !== undefined) return line === null ? this.#skip(entry) : this.#verbatim(entry, line);
    const position = { parentUuid: this.#tree.parentOf(entry), keptUuid: this.#keptUuid(entry) };
    const lines = linesOfEntry(entry, this.#context, position, this.#report);
    if (lines === null) {
      if (entry.type !== "leaf") this.#report.leave(entry.type);
      return this.#skip(entry);
    }
    this.#report.written++;
    const whole = withRestOfLines(lines, entry).map((each) => this.#hung(each, position.parentUuid));
    if (isNode(entry)) this.#put(entry, whole);
    return whole.map((each) => JSON.stringify(each));
  }

  /** A line of the program's own may name a parent that is not written here; then it hangs where its entry does. */
  #hung(line: JsonObject, parentUuid: string | null): JsonObject {
    const named = textIn(line.parentUuid);
    const whole = named === undefined || this.#uuids.has(named) ? line : { ...line, parentUuid };
    const uuid = textIn(whole.uuid);
    if (uuid !== undefined) this.#uuids.add(uuid);
    return whole;
  }

  #put(entry: Entry, lines: readonly JsonObject[]): void {
    const uuids = lines.flatMap(({ uuid }) => (typeof uuid === "string" ? [uuid] : []));
    const [first, last] = [uuids[0], uuids.at(-1)];
    // A line that said several things was written with the first of them.
    if (first === undefined || last === undefined) this.#tree.skip(entry);
    else {
      this.#firstLines.set(entry.id, first);
      this.#tree.put(entry, last);
      this.#last = last;
    }
  }

  #skip(entry: Entry): readonly string[] {
    if (isNode(entry)) this.#tree.skip(entry);
    return [];
  }

  #verbatim(entry: Entry, line: string): readonly string[] {
    this.#report.verbatim++;
    const value: unknown = JSON.parse(line);
    const fields: JsonObject = isFields(value) ? value : {};
    const uuid = textIn(fields.uuid);
    if (uuid === undefined) this.#tree.skip(entry);
    else {
      this.#tree.put(entry, uuid);
      this.#uuids.add(uuid);
      this.#last = uuid;
    }
    const { sessionId } = this.#context;
    const own = fields.sessionId === undefined || fields.sessionId !== this.#imported || sessionId === this.#imported;
    return [own ? line : JSON.stringify({ ...fields, sessionId })];
  }

  #keptUuid(entry: Entry): string | undefined {
    if (entry.type !== "compaction" || entry.firstKeptEntryId === entry.id) return undefined;
    return this.#firstLines.get(entry.firstKeptEntryId);
  }
}
