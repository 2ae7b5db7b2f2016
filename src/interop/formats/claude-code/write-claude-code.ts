import type { JsonObject } from "../../../internal/json.ts";
import { type Entry, isNode } from "../../../session/log/entry.ts";
import type { ForeignSource } from "../foreign-format.ts";
import { uuidFrom } from "../foreign-id.ts";
import { noteOf } from "../foreign-note.ts";
import type { WriteReport } from "../foreign-report.ts";
import { ForeignTree } from "../foreign-tree.ts";
import { isFields, textIn } from "../foreign-values.ts";
import { KeptLines } from "../kept-line.ts";
import { type LineContext, leafMark, linesBefore, linesOfEntry, withRestOfLines } from "./claude-code-line.ts";
import { LineOrder, type OutLine } from "./line-order.ts";

/** The version that sessions of other programs claim to be written by. */
const VERSION = "2.1.327";

/** A session as a file of Claude Code, line by line. */
export async function* writeClaudeCode(
  source: ForeignSource,
  report: WriteReport,
): AsyncGenerator<string, void, undefined> {
  const note = noteOf(source.header, "claude-code");
  const common = isFields(note?.rest?.common) ? note.rest.common : { userType: "external", version: VERSION };
  const context = { sessionId: source.foreignId, common: { ...common, cwd: source.cwd } };
  const writer = new LineWriter(context, note?.id, report);
  for await (const entry of source.entries()) yield* writer.linesOf(entry);
  yield* writer.end(source.leafId);
}

class LineWriter {
  /** The last line that hangs on the tree. */
  #last: string | null = null;
  #lastTime = 0;
  readonly #context: LineContext;
  /** The session that the imported lines name: that of a sub-agent names the one that started it. */
  readonly #imported: string | undefined;
  /** The program goes on with no sub-agent, so that one becomes a session of its own. */
  readonly #subAgent: boolean;
  readonly #report: WriteReport;
  readonly #tree = new ForeignTree();
  readonly #kept = new KeptLines("claude-code");
  readonly #order = new LineOrder();
  /** The first line of each entry, for compactions that keep from there on. */
  readonly #firstLines = new Map<string, string>();
  readonly #uuids = new Set<string>();

  constructor(context: LineContext, importedId: string | undefined, report: WriteReport) {
    this.#context = context;
    this.#imported = importedId?.split("/", 1)[0];
    this.#subAgent = importedId !== undefined && importedId !== this.#imported;
    this.#report = report;
  }

  *linesOf(entry: Entry): Generator<string, void, undefined> {
    this.#lastTime = Math.max(this.#lastTime, Date.parse(entry.timestamp));
    const parentUuid = this.#tree.parentOf(entry);
    const kept = this.#kept.take(entry);
    if (kept === null) return this.#skip(entry);
    if (kept !== undefined) return yield* this.#write(this.#order.among(this.#verbatim(entry, kept)));
    const position = { parentUuid, keptUuid: this.#keptUuid(entry) };
    const lines = linesOfEntry(entry, this.#context, position, this.#report);
    if (lines === null) {
      if (entry.type !== "leaf") this.#report.leave(entry.type);
      return this.#skip(entry);
    }
    this.#report.written++;
    const whole = withRestOfLines(lines, entry).map((value, index, all) => ({
      value,
      // The lines of an answer hang on each other.
      parentUuid: textIn(all[index - 1]?.uuid) ?? parentUuid,
    }));
    if (isNode(entry)) this.#put(entry, whole);
    if (entry.type === "message" && entry.message.role === "assistant")
      yield* this.#write(this.#order.answer(whole, linesBefore(entry)));
    else if (entry.type === "session_info" || (entry.type === "message" && entry.message.role === "tool"))
      for (const line of whole) yield* this.#write(this.#order.among(line));
    else yield* this.#write([...this.#order.end(), ...whole]);
  }

  /** The program goes on after the latest line: one that says nothing stands where the session does, if that is elsewhere. */
  *end(leafId: string | null): Generator<string, void, undefined> {
    yield* this.#write(this.#order.end());
    const leaf = leafId === null ? null : (this.#tree.idOf(leafId) ?? null);
    if (leaf === this.#last || this.#last === null) return;
    const timestamp = new Date(this.#lastTime + 1).toISOString();
    const uuid = uuidFrom(`${this.#last}.${leaf}.leaf`);
    yield* this.#write([{ value: leafMark({ uuid, parentUuid: leaf, timestamp }, this.#context), parentUuid: leaf }]);
  }

  *#write(lines: readonly OutLine[]): Generator<string, void, undefined> {
    for (const { value, text, parentUuid } of lines) {
      const uuid = textIn(value.uuid);
      if (uuid !== undefined) this.#last = uuid;
      const whole = text === undefined ? this.#hung(value, parentUuid) : this.#ofSession(value);
      if (uuid !== undefined) this.#uuids.add(uuid);
      const own = this.#subAgent ? asMain(whole) : whole;
      yield `${own === value && text !== undefined ? text : JSON.stringify(own)}\n`;
    }
  }

  /** A line of the program's own may name a parent that is not written here; then it hangs where its entry does. */
  #hung(line: JsonObject, parentUuid: string | null): JsonObject {
    const named = textIn(line.parentUuid);
    return named === undefined || this.#uuids.has(named) ? line : { ...line, parentUuid };
  }

  /** A kept line that names the session by its imported id names it by the one that it goes out under. */
  #ofSession(line: JsonObject): JsonObject {
    const { sessionId } = this.#context;
    const named = line.sessionId !== undefined && line.sessionId === this.#imported;
    return named && sessionId !== this.#imported ? { ...line, sessionId } : line;
  }

  #put(entry: Entry, lines: readonly OutLine[]): void {
    const uuids = lines.flatMap(({ value: { uuid } }) => (typeof uuid === "string" ? [uuid] : []));
    const [first, last] = [uuids[0], uuids.at(-1)];
    // A line that said several things was written with the first of them.
    if (first === undefined || last === undefined) this.#tree.skip(entry);
    else {
      this.#firstLines.set(entry.id, first);
      this.#tree.put(entry, last);
    }
  }

  #skip(entry: Entry): void {
    if (isNode(entry)) this.#tree.skip(entry);
  }

  #verbatim(entry: Entry, text: string): OutLine {
    this.#report.verbatim++;
    const parsed: unknown = JSON.parse(text);
    const value: JsonObject = isFields(parsed) ? parsed : {};
    const uuid = textIn(value.uuid);
    if (uuid === undefined) this.#tree.skip(entry);
    else this.#tree.put(entry, uuid);
    return { value, text, parentUuid: null };
  }

  #keptUuid(entry: Entry): string | undefined {
    if (entry.type !== "compaction" || entry.firstKeptEntryId === entry.id) return undefined;
    return this.#firstLines.get(entry.firstKeptEntryId);
  }
}

/** A line of a sub-agent's as one of a session of its own. */
function asMain(line: JsonObject): JsonObject {
  const { agentId: _agentId, ...main } = line;
  return line.isSidechain === true ? { ...main, isSidechain: false } : main;
}
