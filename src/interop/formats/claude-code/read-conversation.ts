import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import type { NodeBody } from "../../../session/log/entry.ts";
import type { FindRest, ForeignBody, ForeignLine, ForeignLogSink } from "../foreign-format.ts";
import { digest } from "../foreign-id.ts";
import type { ReadReport } from "../foreign-report.ts";
import { ForeignTree } from "../foreign-tree.ts";
import { isFields, textIn } from "../foreign-values.ts";
import { isLeafMark, type LineContext, linesOfEntry, META, restOfLines } from "./claude-code-line.ts";
import { answerOfLines, contentOfBlocks, messageIdOf, resultOfBlock } from "./claude-code-message.ts";

/** How many lines are held back for an answer that goes on; a longer one is cut in two. */
const HELD_LINES_MAX = 1000;

type ObjectLine = ForeignLine & { readonly value: JsonObject };

/** An answer whose lines still come, with what stands among them in the file. */
interface OpenAnswer {
  readonly messageId: string;
  readonly lines: ObjectLine[];
  readonly callIds: Set<string>;
  /** Results of its calls and lines that are kept, which come after it. */
  readonly after: ObjectLine[];
}

/**
 * Reads the lines of one conversation.
 *
 * The program's tree splits at every answer with several calls: each result hangs on the line of its call. Such a split is
 * no branch. The lines of an answer become one entry, its results follow it in the order of the file, and whatever hangs on
 * any of these lines hangs on the last of them.
 */
export class ConversationReader {
  readonly #log: ForeignLogSink;
  readonly #report: ReadReport;
  readonly #context: LineContext;
  readonly #tree = new ForeignTree();
  readonly #toolNames = new Map<string, string>();
  /** The entry that holds each line of an answer. */
  readonly #entryOf = new Map<string, string>();
  /** The lines of boundaries and of their summaries. */
  readonly #compacted = new Set<string>();
  #name: string | null = null;
  #renames = 0;
  #answer: OpenAnswer | null = null;
  /** A boundary that waits for its summary. */
  #boundary: ObjectLine | null = null;

  constructor(log: ForeignLogSink, report: ReadReport, context: LineContext) {
    this.#log = log;
    this.#report = report;
    this.#context = context;
  }

  take(line: ObjectLine): void {
    const { value } = line;
    if (this.#compacted.has(idOf(line))) {
      this.#report.doubled++;
      return;
    }
    if (this.#boundary !== null) {
      if (this.#takeSummary(line, this.#boundary)) return;
      if (isEntryLine(value)) this.#closeBoundary();
    }
    if (value.type === "assistant" && this.#takeAnswer(line)) return;
    if (this.#answer !== null && belongsTo(this.#answer, value)) {
      this.#answer.after.push(line);
      if (this.#answer.after.length < HELD_LINES_MAX) return;
      this.#closeAnswer();
      return;
    }
    this.#closeAnswer();
    this.#put(line);
  }

  rest(): void {
    this.#closeAnswer();
    this.#closeBoundary();
  }

  #takeAnswer(line: ObjectLine): boolean {
    const messageId = messageIdOf(line.value) ?? textIn(line.value.uuid);
    if (messageId === undefined || !isFields(line.value.message)) return false;
    if (this.#entryOf.has(idOf(line))) {
      this.#report.doubled++;
      return true;
    }
    if (this.#answer?.messageId !== messageId) {
      this.#closeAnswer();
      this.#answer = { messageId, lines: [], callIds: new Set(), after: [] };
    }
    this.#entryOf.set(idOf(line), idOf(this.#answer.lines[0] ?? line));
    this.#answer.lines.push(line);
    for (const [id, name] of callsIn(line.value.message)) {
      this.#answer.callIds.add(id);
      this.#toolNames.set(id, name);
    }
    return true;
  }

  #closeAnswer(): void {
    const answer = this.#answer;
    this.#answer = null;
    if (answer === null) return;
    const { lines } = answer;
    const [first] = lines as [ObjectLine];
    const message = answerOfLines(lines.map(({ value }) => value));
    this.#add(first, { type: "message", message }, lines, parentIn(first.value, this.#log));
    const group = lines.map(idOf);
    let last = idOf(first);
    for (const line of answer.after) {
      this.#put(line, true);
      if (typeof line.value.uuid !== "string") continue;
      last = line.value.uuid;
      group.push(last);
    }
    for (const id of group) this.#log.alias(id, last);
  }

  /** Adds or keeps a line that is no answer; `here`: where the session stands, whatever its parent is. */
  #put(line: ObjectLine, here = false): void {
    const { value } = line;
    const parentId = here ? undefined : parentIn(value, this.#log);
    if (value.type === "system" && value.subtype === "compact_boundary" && typeof value.uuid === "string") {
      this.#boundary = line;
      this.#compacted.add(value.uuid);
      return;
    }
    if (isLeafMark(value) && typeof value.uuid === "string") {
      this.#log.move(value.uuid, parentId ?? null, line);
      return;
    }
    const title = titleOf(value, this.#log);
    if (title !== undefined) {
      this.#rename(line, title);
      return;
    }
    const bodies = value.type === "user" ? this.#bodiesOf(value) : null;
    if (bodies === null) {
      this.#keep(line, parentId);
      return;
    }
    const [first, ...others] = bodies as [NodeBody, ...NodeBody[]];
    this.#add(line, first, [line], parentId);
    others.forEach((body, index) => {
      const id = `${idOf(line)}.${index + 1}`;
      this.#log.add({ id, time: value.timestamp, body, rest: () => ({ lines: [] }) }, []);
      this.#tree.put({ id: this.#log.leafId ?? id }, idOf(line));
      this.#log.alias(idOf(line), id);
    });
  }

  /** The program says the title again and again; only a new one is news. */
  #rename(line: ObjectLine, name: string): void {
    if (name === this.#name) {
      this.#report.doubled++;
      return;
    }
    this.#name = name;
    this.#renames++;
    const id = `title-${this.#renames}-${digest(name).slice(0, 12)}`;
    this.#add(line, { type: "session_info", name }, [line], undefined, { id });
  }

  /** The results of tools in a user's line, and what else it says; null where it says what has no counterpart. */
  #bodiesOf(value: JsonObject): NodeBody[] | null {
    const blocks = isFields(value.message) ? value.message.content : undefined;
    const items = Array.isArray(blocks) ? (blocks as readonly JsonValue[]) : [];
    const results = items.map((block) => resultOfBlock(block, (id) => this.#toolNames.get(id)));
    const others = items.filter((_, index) => results[index] === null);
    const content = contentOfBlocks(Array.isArray(blocks) ? others : blocks);
    if (content === null || value.isVisibleInTranscriptOnly === true) return null;
    const bodies = results.flatMap((message): NodeBody[] => (message === null ? [] : [{ type: "message", message }]));
    if (bodies.length > 0 && others.length === 0) return bodies;
    if (value.isMeta === true) bodies.push({ type: "custom_message", customType: META, content, display: false });
    else bodies.push({ type: "message", message: { role: "user", content } });
    return bodies;
  }

  #takeSummary(line: ObjectLine, boundary: ObjectLine): boolean {
    const { value } = line;
    if (value.isCompactSummary !== true || value.parentUuid !== boundary.value.uuid) return false;
    const said = isFields(value.message) ? contentOfBlocks(value.message.content) : null;
    const summary =
      typeof said === "string" ? said : (said ?? []).map((part) => ("text" in part ? part.text : "")).join("\n");
    const metadata = isFields(boundary.value.compactMetadata) ? boundary.value.compactMetadata : {};
    const segment = isFields(metadata.preservedSegment) ? metadata.preservedSegment : {};
    const head = textIn(segment.headUuid);
    const id = idOf(boundary);
    this.#boundary = null;
    const body: NodeBody = {
      type: "compaction",
      summary,
      firstKeptEntryId: head !== undefined && this.#log.has(head) ? (this.#entryOf.get(head) ?? head) : id,
      tokensBefore: typeof metadata.preTokens === "number" ? metadata.preTokens : 0,
    };
    this.#add(boundary, body, [boundary, line], parentIn(boundary.value, this.#log), { keptUuid: head });
    this.#log.alias(idOf(line), id);
    this.#compacted.add(idOf(line));
    return true;
  }

  #closeBoundary(): void {
    const boundary = this.#boundary;
    this.#boundary = null;
    if (boundary !== null) this.#keep(boundary, parentIn(boundary.value, this.#log));
  }

  /** Adds an entry, with what its lines say beyond it kept beside it. */
  #add(
    first: ObjectLine,
    body: ForeignBody,
    lines: readonly ObjectLine[],
    parentId: string | null | undefined,
    { id = idOf(first), keptUuid }: { readonly id?: string; readonly keptUuid?: string | undefined } = {},
  ): void {
    const rest: FindRest = (entry, report) => {
      const written = linesOfEntry(entry, this.#context, { parentUuid: this.#tree.parentOf(entry), keptUuid }, report);
      return restOfLines(lines, written ?? []);
    };
    this.#log.add({ id, parentId, time: first.value.timestamp, body, rest }, lines);
    if (this.#log.leafId !== null && body.type !== "session_info")
      this.#tree.put({ id: this.#log.leafId }, textIn(lines.at(-1)?.value.uuid) ?? id);
  }

  #keep(line: ObjectLine, parentId: string | null | undefined): void {
    const { uuid, timestamp: time } = line.value;
    const before = this.#log.leafId;
    const id = textIn(uuid);
    this.#log.keep(line, { id, parentId: id === undefined ? undefined : parentId, time });
    const { leafId } = this.#log;
    if (leafId === null || leafId === before) return;
    if (id === undefined) this.#tree.skip({ id: leafId, parentId: before });
    else this.#tree.put({ id: leafId }, id);
  }
}

/** The ids and names of the calls in a line of an answer. */
function callsIn({ content }: JsonObject): [string, string][] {
  const blocks = Array.isArray(content) ? (content as readonly JsonValue[]) : [];
  return blocks.flatMap((block): [string, string][] => {
    if (!isFields(block) || block.type !== "tool_use") return [];
    return typeof block.id === "string" && typeof block.name === "string" ? [[block.id, block.name]] : [];
  });
}

/** Whether a line hangs on the tree. */
function isEntryLine(value: JsonObject): boolean {
  return typeof value.uuid === "string";
}

/** Whether a line stands among the lines of an open answer without ending it. */
function belongsTo({ callIds }: OpenAnswer, value: JsonObject): boolean {
  if (value.type !== "user") return value.type !== "system" && value.type !== "summary";
  const blocks = isFields(value.message) ? value.message.content : undefined;
  if (!Array.isArray(blocks) || blocks.length === 0) return false;
  return (blocks as readonly JsonValue[]).every(
    (block) => isFields(block) && callIds.has(textIn(block.tool_use_id) ?? ""),
  );
}

/** The parent that a line names; undefined where it goes after the one before. */
function parentIn(value: JsonObject, log: ForeignLogSink): string | null | undefined {
  const named = textIn(value.parentUuid) ?? textIn(value.logicalParentUuid);
  if (named !== undefined) return log.has(named) ? named : undefined;
  return value.parentUuid === null ? null : undefined;
}

/** The title that a line gives the session. An old `summary` is one only of the session that its last message is in. */
function titleOf(value: JsonObject, log: ForeignLogSink): string | undefined {
  if (value.type === "custom-title") return textIn(value.customTitle);
  if (value.type === "ai-title") return textIn(value.aiTitle);
  if (value.type !== "summary" || !log.has(textIn(value.leafUuid) ?? "")) return undefined;
  return textIn(value.summary);
}

function idOf({ value, text }: ObjectLine): string {
  return textIn(value.uuid) ?? `line.${digest(text).slice(0, 24)}`;
}
