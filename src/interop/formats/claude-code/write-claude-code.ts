import type { JsonObject } from "../../../internal/json.ts";
import { type Entry, isNode } from "../../../session/log/entry.ts";
import type { ForeignSource } from "../foreign-format.ts";
import { uuidFrom } from "../foreign-id.ts";
import { noteOf } from "../foreign-note.ts";
import type { WriteReport } from "../foreign-report.ts";
import { ForeignTree } from "../foreign-tree.ts";
import { isFields, textIn } from "../foreign-values.ts";
import { KeptLines } from "../kept-line.ts";
import { type LineContext, leafMark, linesBefore, linesOfEntry, restoreLines } from "./claude-code-line.ts";

/** The program version written into sessions that do not come from Claude Code. */
const VERSION = "2.1.328";

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
  /** The uuid of the last line that was written. */
  #last: string | null = null;
  #lastTime = 0;
  readonly #context: LineContext;
  /** The session id in the imported lines; lines of a sub-agent name the session that started it. */
  readonly #imported: string | undefined;
  /** Whether this is a sub-agent's session. Claude Code cannot resume one, so it is written as a main session. */
  readonly #subAgent: boolean;
  readonly #report: WriteReport;
  readonly #tree = new ForeignTree();
  readonly #kept = new KeptLines("claude-code");
  readonly #order = new LineOrder();
  /** The first line of each entry; a compaction names the first line that it keeps. */
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
    if (kept !== undefined) return yield* this.#write(this.#order.between(this.#verbatim(entry, kept)));
    const position = { parentUuid, keptUuid: this.#keptUuid(entry) };
    const lines = linesOfEntry(entry, this.#context, position, this.#report);
    if (lines === null) {
      if (entry.type !== "leaf") this.#report.omit(entry.type);
      return this.#skip(entry);
    }
    this.#report.written++;
    const whole = restoreLines(lines, entry).map((value, index, all) => ({
      value,
      // Each line of an answer is the parent of the next.
      parentUuid: textIn(all[index - 1]?.uuid) ?? parentUuid,
    }));
    if (isNode(entry)) this.#put(entry, whole);
    if (entry.type === "message" && entry.message.role === "assistant")
      yield* this.#write(this.#order.answer(whole, linesBefore(entry)));
    else if (entry.type === "session_info" || (entry.type === "message" && entry.message.role === "tool"))
      for (const line of whole) yield* this.#write(this.#order.between(line));
    else yield* this.#write([...this.#order.end(), ...whole]);
  }

  /** The program resumes at the last line of the file: if that is not the leaf, writes a line that makes the leaf its parent. */
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
      const whole = text === undefined ? this.#withParent(value, parentUuid) : this.#withSessionId(value);
      if (uuid !== undefined) this.#uuids.add(uuid);
      const own = this.#subAgent ? asMain(whole) : whole;
      yield `${own === value && text !== undefined ? text : JSON.stringify(own)}\n`;
    }
  }

  /** Replaces the parent of a restored line by that of its entry, if the parent that it names was not written. */
  #withParent(line: JsonObject, parentUuid: string | null): JsonObject {
    const named = textIn(line.parentUuid);
    return named === undefined || this.#uuids.has(named) ? line : { ...line, parentUuid };
  }

  /** Replaces the imported session id in a kept line by the id that the session is written under. */
  #withSessionId(line: JsonObject): JsonObject {
    const { sessionId } = this.#context;
    const named = line.sessionId !== undefined && line.sessionId === this.#imported;
    return named && sessionId !== this.#imported ? { ...line, sessionId } : line;
  }

  #put(entry: Entry, lines: readonly OutLine[]): void {
    const uuids = lines.flatMap(({ value: { uuid } }) => (typeof uuid === "string" ? [uuid] : []));
    const [first, last] = [uuids[0], uuids.at(-1)];
    // A line that became several entries is written with the first of them; the others have no uuid.
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

/** Turns a line of a sub-agent into a line of a main session. */
function asMain(line: JsonObject): JsonObject {
  const { agentId: _agentId, ...main } = line;
  return line.isSidechain === true ? { ...main, isSidechain: false } : main;
}

/** A line to be written. */
interface OutLine {
  readonly value: JsonObject;
  /** The original text, if an import kept the line verbatim. */
  readonly text?: string;
  /** The parent to use if the parent that the line names is not written. */
  readonly parentUuid: string | null;
}

/**
 * Restores the original order of an answer's lines and of the other lines that the program wrote between them: a result of
 * its first call, or progress. In the log, those other lines follow the answer.
 */
class LineOrder {
  #lines: readonly OutLine[] = [];
  #before: readonly unknown[] = [];
  /** From the uuid of each line of the answer to its position. */
  #positions = new Map<unknown, number>();
  /** How many lines of the answer were emitted. */
  #next = 0;
  /** How many other lines were emitted since the first line of the answer. */
  #passed = 0;

  /** Starts an answer and returns the lines to emit now. `before`: how many other lines preceded each of its lines. */
  answer(lines: readonly OutLine[], before: readonly unknown[]): readonly OutLine[] {
    const earlier = this.end();
    [this.#lines, this.#before, this.#next, this.#passed] = [lines, before, 0, 0];
    this.#positions = new Map(before.length === 0 ? [] : lines.map(({ value }, index) => [value.uuid, index]));
    return [...earlier, ...this.#due()];
  }

  /** Adds a line that may belong between the lines of an answer. Returns the lines to write now, in order. */
  between(line: OutLine): readonly OutLine[] {
    const parent = this.#positions.get(line.value.parentUuid) ?? -1;
    const earlier = this.#until(parent + 1);
    this.#passed++;
    return [...earlier, line, ...this.#due()];
  }

  /** Returns the remaining lines of the answer; no further line belongs between them. */
  end(): readonly OutLine[] {
    return this.#until(this.#lines.length);
  }

  #due(): readonly OutLine[] {
    let end = this.#next;
    // A log from elsewhere may hold something else than a number here; then the line is emitted now.
    while (end < this.#lines.length && !(Number(this.#before[end]) > this.#passed)) end++;
    return this.#until(end);
  }

  #until(end: number): readonly OutLine[] {
    const from = this.#next;
    this.#next = Math.max(from, end);
    return this.#lines.slice(from, this.#next);
  }
}
