import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import type { NodeBody } from "../../../session/log/entry.ts";
import type { AssistantMessage } from "../../../session/message.ts";
import type { Usage } from "../../../session/usage.ts";
import type { FindRest, ForeignBody, ForeignLine, ForeignLogSink } from "../foreign-format.ts";
import { digest } from "../foreign-id.ts";
import type { ReadReport } from "../foreign-report.ts";
import { ForeignTree } from "../foreign-tree.ts";
import { isFields, isFilled, textIn } from "../foreign-values.ts";
import { subtractUsage } from "../subtract-usage.ts";
import { isLeafMark, type LineContext, linesOfEntry, META, patchesOfLines } from "./claude-code-line.ts";
import { answerOfLines, contentOfBlocks, messageIdOf, resultOfBlock } from "./claude-code-message.ts";

/** Maximum text that is buffered for an unfinished answer. Lines beyond it become a separate message. */
const HELD_CHARACTERS_MAX = 16 * 1024 * 1024;

type ObjectLine = ForeignLine & { readonly value: JsonObject };

/** An unfinished answer, with the other lines between its lines. */
interface OpenAnswer {
  readonly messageId: string;
  /** Its buffered lines; `after`: buffered lines between them (results of its calls, kept lines), which will follow it. */
  readonly lines: ObjectLine[];
  readonly after: ObjectLine[];
  heldCharacters: number;
  readonly callIds: Set<string>;
  /** The uuids of all of these lines: a line whose parent is one of them belongs to the answer. */
  readonly uuids: Set<string>;
  /** Whether the program has written a line that marks the answer as finished. */
  ended: boolean;
  /** Whether `flush` emitted it before another answer began. */
  flushed: boolean;
  /** The last of its lines in the log; undefined while all are buffered. */
  last: string | undefined;
}

/** A compaction boundary whose summary has not been read yet. */
interface OpenBoundary {
  readonly line: ObjectLine;
  /** Buffered lines that were read after it. They are added after the summary. */
  readonly after: ObjectLine[];
  heldCharacters: number;
}

/** Usage and cost that were counted for an emitted answer. */
interface CountedAnswer {
  /** The log's count of moves to other branches when the answer was emitted. */
  readonly moves: number;
  readonly usage: Usage | undefined;
  readonly cost: number | undefined;
}

/**
 * Reads the lines of one conversation.
 *
 * In the program's tree, an answer with several calls has several children: the parent of each result is the line of its call.
 * These are not branches. The lines of an answer become one entry, its results follow in the order of the file, and children
 * of any of these lines are attached to the last of them.
 */
export class ConversationReader {
  readonly #log: ForeignLogSink;
  readonly #report: ReadReport;
  readonly #context: LineContext;
  readonly #tree = new ForeignTree();
  readonly #toolNames = new Map<string, string>();
  /** For each call id, the log's count of moves to other branches when the call was made. */
  readonly #callMoves = new Map<string, number>();
  readonly #counted = new Map<string, CountedAnswer>();
  /** From each line of an answer to the entry that holds it. */
  readonly #entryOf = new Map<string, string>();
  /** The ids of compaction boundaries and of their summaries. */
  readonly #compacted = new Set<string>();
  #name: string | null = null;
  #renames = 0;
  #answer: OpenAnswer | null = null;
  #boundary: OpenBoundary | null = null;
  /** Whether an answer continued after `flush` had emitted it. */
  reopened = false;

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
      if (this.#takeSummary(line, this.#boundary) || this.#holdAfter(this.#boundary, line)) return;
      this.#closeBoundary();
    }
    if (value.type === "assistant" && this.#takeAnswer(line)) return;
    const answer = this.#answer;
    if (answer === null || !(belongsTo(answer, value, this.#log) || this.#isLateResult(value))) {
      this.#closeAnswer();
      this.#put(line);
      return;
    }
    if (endsTurn(value)) answer.ended = true;
    if (typeof value.uuid === "string") answer.uuids.add(value.uuid);
    if (answer.last === undefined) this.#hold(answer, answer.after, line);
    else this.#putAfter(answer, answer.last, line);
  }

  /** Emits the buffered answer if the program has finished it. */
  flush(): void {
    const answer = this.#answer;
    if (answer?.ended !== true || answer.last !== undefined) return;
    this.#release(answer);
    answer.flushed = true;
  }

  end(): void {
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
      this.#answer = openAnswer(messageId);
    }
    const answer = this.#answer;
    if (answer.flushed) this.reopened = true;
    if (isFilled(line.value.message.stop_reason)) answer.ended = true;
    answer.uuids.add(idOf(line));
    this.#entryOf.set(idOf(line), idOf(answer.lines[0] ?? line));
    for (const [id, name] of callsIn(line.value.message)) {
      answer.callIds.add(id);
      this.#toolNames.set(id, name);
    }
    this.#hold(answer, answer.lines, line);
    return true;
  }

  #hold(answer: OpenAnswer, lines: ObjectLine[], line: ObjectLine): void {
    lines.push(line);
    answer.heldCharacters += line.text.length;
    if (answer.last !== undefined || answer.heldCharacters > HELD_CHARACTERS_MAX) this.#release(answer);
  }

  #closeAnswer(): void {
    const answer = this.#answer;
    this.#answer = null;
    if (answer !== null) this.#release(answer);
  }

  /** Adds the buffered lines of an answer as one entry, and then the other lines that were between them. */
  #release(answer: OpenAnswer): void {
    const [lines, after] = [answer.lines.splice(0), answer.after.splice(0)];
    answer.heldCharacters = 0;
    const [first] = lines;
    if (first !== undefined) {
      const [id, counted] = [idOf(first), this.#counted.get(answer.messageId)];
      const message = answerOfLines(lines.map(({ value }) => value));
      // A later part of an answer is attached to the leaf: an answer never branches off itself.
      const between = answer.last === undefined && counted?.moves === this.#log.moves;
      const parentId = between || answer.last !== undefined ? undefined : parentIn(first.value, this.#log);
      const whole = counted === undefined ? message : spendingBeyond(message, counted);
      this.#add(first, { type: "message", message: whole }, lines, parentId, { between, others: after });
      const { usage = counted?.usage, cost = counted?.cost } = message;
      this.#counted.set(answer.messageId, { moves: this.#log.moves, usage, cost });
      for (const line of lines) this.#log.alias(idOf(line), id);
      if (answer.last !== undefined) this.#log.alias(answer.last, id);
      answer.last = id;
      for (const callId of answer.callIds) this.#callMoves.set(callId, this.#log.moves);
    }
    for (const line of after) this.#putAfter(answer, answer.last ?? idOf(line), line);
  }

  /** Adds a line after an answer. Children of any line of the answer are attached to this line from now on. */
  #putAfter(answer: OpenAnswer, last: string, line: ObjectLine): void {
    this.#put(line, true);
    if (typeof line.value.uuid !== "string") return;
    this.#log.alias(last, line.value.uuid);
    answer.last = line.value.uuid;
  }

  /** Adds or keeps a line that is not part of an answer. `here`: attaches it to the leaf, whatever parent it names. */
  #put(line: ObjectLine, here = false): void {
    const { value } = line;
    // A result that arrives after later messages does not start a branch.
    const between = !here && this.#isLateResult(value);
    const parentId = here || between ? undefined : parentIn(value, this.#log);
    if (value.type === "system" && value.subtype === "compact_boundary" && typeof value.uuid === "string") {
      this.#boundary = { line, after: [], heldCharacters: 0 };
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
    const bodies = value.type === "user" ? this.#bodiesOf(value) : queuedIn(value);
    if (bodies === null) {
      this.#keep(line, parentId);
      return;
    }
    const [first, ...others] = bodies as [NodeBody, ...NodeBody[]];
    this.#add(line, first, [line], parentId, { between });
    // Computed once: it may be the digest of a long line.
    const lineId = others.length === 0 ? "" : idOf(line);
    others.forEach((body, index) => {
      const id = `${lineId}.${index + 1}`;
      this.#log.add({ id, time: value.timestamp, body, rest: () => ({ lines: [] }) }, []);
      this.#tree.put({ id: this.#log.leafId ?? id }, lineId);
      this.#log.alias(lineId, id);
    });
  }

  /** Whether a line holds results, all of calls that were made on the current branch. */
  #isLateResult({ type, message }: JsonObject): boolean {
    const results = type === "user" ? blocksIn(message).filter(isResult) : [];
    const { moves } = this.#log;
    return (
      results.length > 0 && results.every((block) => this.#callMoves.get(textIn(block.tool_use_id) ?? "") === moves)
    );
  }

  /** Adds a new title. The program repeats the title often; repetitions are counted as duplicates. */
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

  /** The tool results in a user's line and the message with its other content; null if the line has no counterpart. */
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

  #takeSummary(line: ObjectLine, { line: boundary, after }: OpenBoundary): boolean {
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
    for (const other of after) this.take(other);
    return true;
  }

  /** Buffers a line between a boundary and its summary. Returns false for a line that the program writes after the summary only. */
  #holdAfter(boundary: OpenBoundary, line: ObjectLine): boolean {
    const { type, subtype, uuid, isMeta } = line.value;
    const repeated = typeof uuid === "string" && this.#log.has(uuid);
    const isMessage = type === "assistant" || (type === "user" && isMeta !== true);
    if (subtype === "compact_boundary" || (isMessage && !repeated)) return false;
    boundary.after.push(line);
    boundary.heldCharacters += line.text.length;
    if (boundary.heldCharacters > HELD_CHARACTERS_MAX) this.#closeBoundary();
    return true;
  }

  /** Keeps a boundary without a summary verbatim. */
  #closeBoundary(): void {
    const boundary = this.#boundary;
    this.#boundary = null;
    if (boundary === null) return;
    this.#keep(boundary.line, parentIn(boundary.line.value, this.#log));
    for (const other of boundary.after) this.take(other);
  }

  /** Adds an entry, together with the patch that restores its lines. */
  #add(
    first: ObjectLine,
    body: ForeignBody,
    lines: readonly ObjectLine[],
    parentId: string | null | undefined,
    { id = idOf(first), keptUuid, between = false, others = [] }: AddOptions = {},
  ): void {
    const rest: FindRest = (entry, report) => {
      const written = linesOfEntry(entry, this.#context, { parentUuid: this.#tree.parentOf(entry), keptUuid }, report);
      return patchesOfLines(lines, written ?? [], others);
    };
    this.#log.add({ id, parentId, time: first.value.timestamp, body, rest, between }, lines);
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

interface AddOptions {
  /** The id of the entry (default: that of its first line). */
  readonly id?: string;
  /** The line of the first entry that a compaction keeps. */
  readonly keptUuid?: string | undefined;
  /** Whether to insert it between the previous entry and the children of that entry. */
  readonly between?: boolean;
  /** Other lines between the lines of an answer in the file; they follow the answer in the log. */
  readonly others?: readonly ForeignLine[];
}

function openAnswer(messageId: string): OpenAnswer {
  const held = { lines: [], after: [], heldCharacters: 0 };
  return {
    ...{ messageId, ...held, callIds: new Set(), uuids: new Set() },
    ...{ ended: false, flushed: false, last: undefined },
  };
}

/** A later part of an answer, with only the usage and cost that were not counted yet. */
function spendingBeyond({ usage: all, cost: paid, ...message }: AssistantMessage, counted: CountedAnswer) {
  const usage = subtractUsage(all, counted.usage);
  const cost = (paid ?? 0) - (counted.cost ?? 0);
  return { ...message, ...(usage === undefined ? {} : { usage }), ...(cost > 0 ? { cost } : {}) };
}

/** Modes of queued commands that a person typed. */
const TYPED_MODES: readonly unknown[] = [undefined, "prompt", "bash"];

/** The bodies of a message that was queued while the program worked; null if the line is no such message. */
function queuedIn({ type, attachment }: JsonObject): NodeBody[] | null {
  if (type !== "attachment" || !isFields(attachment) || attachment.type !== "queued_command") return null;
  const content = contentOfBlocks(attachment.prompt);
  if (content === null || content.length === 0) return null;
  if (TYPED_MODES.includes(attachment.commandMode) && attachment.isMeta !== true)
    return [{ type: "message", message: { role: "user", content } }];
  return [{ type: "custom_message", customType: META, content, display: false }];
}

/** The ids and names of the calls in a line of an answer. */
function callsIn({ content }: JsonObject): [string, string][] {
  const blocks = Array.isArray(content) ? (content as readonly JsonValue[]) : [];
  return blocks.flatMap((block): [string, string][] => {
    if (!isFields(block) || block.type !== "tool_use") return [];
    return typeof block.id === "string" && typeof block.name === "string" ? [[block.id, block.name]] : [];
  });
}

/**
 * Whether a line belongs to an unfinished answer without ending it: a result of one of its calls, a line outside the tree, or
 * a line whose parent is a line of the answer, or missing, and which is not the next message of the user.
 */
function belongsTo({ callIds, uuids }: OpenAnswer, value: JsonObject, log: ForeignLogSink): boolean {
  if (value.type === "user" && namesCall(value.message, callIds)) return true;
  if (value.type === "assistant" || isLeafMark(value) || value.subtype === "compact_boundary") return false;
  if (typeof value.uuid !== "string") return value.type !== "user";
  const parent = textIn(value.parentUuid);
  // A line whose parent is not in the file follows the line before it.
  const hangs = parent !== undefined && (uuids.has(parent) || !log.has(parent));
  if (value.type === "user") return hangs && (value.isMeta === true || blocksIn(value.message).some(isResult));
  return hangs || (value.type !== "system" && queuedIn(value) === null);
}

function blocksIn(message: JsonValue | undefined): readonly JsonObject[] {
  const blocks = isFields(message) ? message.content : undefined;
  return Array.isArray(blocks) ? (blocks as readonly JsonValue[]).filter(isFields) : [];
}

function namesCall(message: JsonValue | undefined, callIds: ReadonlySet<string>): boolean {
  return blocksIn(message).some((block) => callIds.has(textIn(block.tool_use_id) ?? ""));
}

function isResult({ type }: JsonObject): boolean {
  return type === "tool_result";
}

/** Whether the line marks the end of a turn: the program writes it once the last answer is complete. */
function endsTurn({ type, subtype }: JsonObject): boolean {
  return type === "last-prompt" || subtype === "turn_duration" || subtype === "stop_hook_summary";
}

/** The parent that a line names; undefined if it names none that is known, so that it follows the previous line. */
function parentIn(value: JsonObject, log: ForeignLogSink): string | null | undefined {
  const named = textIn(value.parentUuid) ?? textIn(value.logicalParentUuid);
  if (named !== undefined) return log.has(named) ? named : undefined;
  return value.parentUuid === null ? null : undefined;
}

/** The session title in a line. An old `summary` line may be of another session: it counts only if its leaf is in this log. */
function titleOf(value: JsonObject, log: ForeignLogSink): string | undefined {
  if (value.type === "custom-title") return textIn(value.customTitle);
  if (value.type === "ai-title") return textIn(value.aiTitle);
  if (value.type !== "summary" || !log.has(textIn(value.leafUuid) ?? "")) return undefined;
  return textIn(value.summary);
}

function idOf({ value, text }: ObjectLine): string {
  return textIn(value.uuid) ?? `line.${digest(text).slice(0, 24)}`;
}
