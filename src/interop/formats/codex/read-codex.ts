import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import type { AssistantMessage } from "../../../session/message.ts";
import type { Usage } from "../../../session/usage.ts";
import type {
  FindRest,
  ForeignBody,
  ForeignLine,
  ForeignLogSink,
  ForeignReader,
  ForeignSink,
} from "../foreign-format.ts";
import { digest } from "../foreign-id.ts";
import { isFields, placeholderOf, textIn, textOrParts } from "../foreign-values.ts";
import { answerSettings, spendingIn, bodyOfMarks } from "../own-marks.ts";
import { diffJson } from "../json-patch.ts";
import { answerOfItems, contentOfItem, isOfProgram, kindOfItem, textOfItem, usageOfCodex } from "./codex-item.ts";
import { itemsOfMessage } from "./codex-line.ts";
import { unknownKindOf } from "./known-kinds.ts";
import { createHash } from "node:crypto";
import { timestampOf } from "../foreign-log.ts";

/** An unfinished answer. */
interface OpenAnswer {
  readonly lines: ForeignLine[];
  /** Its items, by the index of their lines. */
  readonly items: Map<number, JsonObject>;
  /** The index of the last line that holds an item. */
  lastItem: number;
  readonly marks: JsonObject | null;
  usage: Usage | null;
}

/** Events that end an answer even if its token counts were not written. */
const ENDS = new Set([
  "task_started",
  "task_complete",
  "turn_started",
  "turn_complete",
  "turn_aborted",
  "user_message",
]);

/** The originator that Skein writes into its rollouts. */
export const OWN_ORIGINATOR = "skein";

/** Reads a rollout of Codex. */
export class CodexReader implements ForeignReader {
  readonly #sink: ForeignSink;
  #log: ForeignLogSink | null = null;
  readonly #early = new EarlyLines();
  #last = "";
  #answer: OpenAnswer | null = null;
  /** Deferred additions: tool outputs after an answer whose token counts have not been read yet. */
  #after: (() => void)[] = [];
  #provider = "openai";
  #model: string | undefined;
  #effort: string | undefined;
  #tokens = 0;
  /** Whether the last token counts came as a `token_usage_record`; the next `token_count` repeats it. */
  #recorded = false;
  /** The tokens of the whole session at the last token counts. */
  #total = 0;
  /** Usage of a coming summary: undefined before its text was read, null until its token counts are read. */
  #summaryUsage: Usage | null | undefined;
  readonly #callNames = new Map<string, string>();
  /** The leaf before each turn of the user. */
  readonly #turns: (string | null)[] = [];

  constructor(sink: ForeignSink) {
    this.#sink = sink;
  }

  line(given: ForeignLine): void {
    if (this.#log !== null && given.text === this.#last) {
      this.#sink.report.doubled++;
      return;
    }
    this.#last = given.text;
    const line = this.#early.present(given);
    const { value } = line;
    const payload = isFields(value) ? value.payload : undefined;
    const kind = unknownKindOf(value);
    if (kind !== undefined) this.#sink.report.countUnknown(kind);
    if (this.#log === null) this.#begin(line);
    else if (!isFields(value) || !isFields(payload)) this.#log.keep(line);
    else this.#take(line, value, payload, this.#log);
  }

  end(): void {
    this.#release();
  }

  #begin(line: ForeignLine): void {
    const meta = isFields(line.value) && line.value.type === "session_meta" ? line.value.payload : undefined;
    const id = isFields(meta) ? textIn(meta.id) : undefined;
    if (!isFields(meta) || id === undefined) {
      this.#sink.report.lose(line.number, "it precedes the header of the session");
      return;
    }
    this.#provider = textIn(meta.model_provider) ?? this.#provider;
    const parent = textIn(meta.forked_from_id) ?? textIn(meta.parent_thread_id) ?? spawnerOf(meta.source);
    this.#log = this.#sink.begin({
      foreignId: id,
      ...(parent === undefined ? {} : { parentForeignId: parent }),
      createdAt: textIn(meta.timestamp) ?? null,
      cwd: textIn(meta.cwd) ?? null,
      version: textIn(meta.cli_version) ?? null,
    });
    // Kept as an entry instead of in the header: it holds all of Codex's instructions to its model.
    if (meta.originator === OWN_ORIGINATOR) this.#sink.report.mapped++;
    else this.#log.keep(line);
  }

  #take(line: ForeignLine, value: JsonObject, payload: JsonObject, log: ForeignLogSink): void {
    const marks = isFields(value.skein) ? value.skein : null;
    const item = itemIn(value, payload, marks);
    const kind = item === null ? null : kindOfItem(item);
    if (item !== null && (kind === "reasoning" || kind === "answer" || kind === "call")) this.#open(line, item, marks);
    else if (kind !== null && item !== null) this.#message(line, item, kind === "output", marks, log);
    else if (value.type === "token_usage_record") {
      this.#recorded = true;
      this.#total = totalIn(payload.thread_token_usage) ?? this.#total;
      this.#count(line, usageOfCodex(payload.usage), log);
    } else if (payload.type === "token_count" && isFields(payload.info)) {
      // It repeats the record before it, even if lines of the answer are between them.
      const [repeated, before] = [this.#recorded, this.#total];
      this.#recorded = false;
      this.#total = totalIn(payload.info.total_token_usage) ?? before;
      if (!repeated && this.#total === before && before > 0) this.#keepCounts(line, log);
      else this.#count(line, repeated ? null : usageOfCodex(payload.info.last_token_usage), log);
    } else if (value.type === "turn_context") this.#settings(line, payload, marks, log);
    else if (value.type === "compacted") this.#compaction(line, payload, marks, log);
    else if (payload.type === "thread_rolled_back") this.#back(line, payload, log);
    else if (payload.type === "thread_name_updated" && typeof payload.thread_name === "string")
      this.#add(line, { type: "session_info", name: payload.thread_name }, marks, log);
    else if (this.#answer !== null && !isOfSummary(value) && !ENDS.has(textIn(payload.type) ?? ""))
      this.#answer.lines.push(line);
    else {
      this.#release();
      if (isOfSummary(value)) this.#summaryUsage ??= null;
      log.keep(line, { time: value.timestamp });
    }
  }

  /** Adds a line to the open answer. A line whose marks have an id begins a new answer. */
  #open(line: ForeignLine, item: JsonObject, marks: JsonObject | null): void {
    if (this.#answer === null || marks?.id !== undefined || this.#after.length > 0) {
      this.#release();
      this.#answer = {
        lines: [],
        items: new Map(),
        lastItem: 0,
        marks: marks?.id === undefined ? null : marks,
        usage: null,
      };
    }
    this.#answer.lastItem = this.#answer.lines.length;
    this.#answer.items.set(this.#answer.lastItem, item);
    this.#answer.lines.push(line);
    const [callId, name] = [textIn(item.call_id), textIn(item.name)];
    if (callId !== undefined) this.#callNames.set(callId, name ?? "local_shell");
  }

  /** Handles the token counts of an answer, which follow the answer or the outputs of its tools. */
  #count(line: ForeignLine, usage: Usage | null, log: ForeignLogSink): void {
    if (usage !== null && usage.totalTokens > 0) this.#tokens = usage.totalTokens;
    const answer = this.#answer;
    if (answer === null) {
      if (this.#summaryUsage === null) this.#summaryUsage = usage;
      log.keep(line, { time: timeOf(line) });
      return;
    }
    answer.usage = usage;
    const late = this.#after.length > 0;
    if (!late) answer.lines.push(line);
    this.#release(late ? 0 : 1);
    if (late) log.keep(line, { time: timeOf(line) });
  }

  /** Keeps counts that add nothing: Codex repeats the last ones with new rate limits when a request begins, even if it fails. */
  #keepCounts(line: ForeignLine, log: ForeignLogSink): void {
    if (this.#answer === null) log.keep(line, { time: timeOf(line) });
    else if (this.#after.length === 0) this.#answer.lines.push(line);
    else this.#after.push(() => log.keep(line, { time: timeOf(line) }));
  }

  #message(
    line: ForeignLine,
    item: JsonObject,
    isOutput: boolean,
    marks: JsonObject | null,
    log: ForeignLogSink,
  ): void {
    const add = (): void => {
      const body = isOutput ? this.#outputOf(item, marks) : inputOf(item, marks);
      if (body === null) log.keep(line, { time: timeOf(line) });
      else this.#add(line, body, marks, log);
    };
    if (isOutput && this.#answer !== null) this.#after.push(add);
    else {
      this.#release();
      if (!isOutput) this.#turns.push(log.leafId);
      add();
    }
  }

  #outputOf(item: JsonObject, marks: JsonObject | null): ForeignBody | null {
    const toolCallId = textIn(item.call_id);
    // The first versions of Codex wrote an object here.
    const output = isFields(item.output) ? item.output.content : item.output;
    if (toolCallId === undefined) return null;
    const content = typeof output === "string" ? output : (contentOfItem(output) ?? [placeholderOf(output)]);
    const failed = marks?.isError === true || (isFields(item.output) && item.output.success === false);
    const name = textIn(marks?.name) ?? this.#callNames.get(toolCallId) ?? "";
    const message = { role: "tool", toolCallId, name, content, ...(failed ? { isError: true } : {}) } as const;
    return { type: "message", message };
  }

  #settings(line: ForeignLine, payload: JsonObject, marks: JsonObject | null, log: ForeignLogSink): void {
    this.#release();
    const model = textIn(payload.model);
    const effort = textIn(payload.effort) ?? effortIn(payload);
    const thinkingLevel = effort === "none" ? "off" : effort;
    if (marks?.type === "thinking_level_change" && thinkingLevel !== undefined)
      this.#add(line, { type: "thinking_level_change", thinkingLevel }, marks, log);
    else if (model !== undefined && model !== "" && (model !== this.#model || marks !== null)) {
      const provider = textIn(marks?.provider) ?? this.#provider;
      this.#add(line, { type: "model_change", provider, modelId: model }, marks, log);
    } else log.keep(line, { time: timeOf(line) });
    if (marks === null && thinkingLevel !== undefined && thinkingLevel !== this.#effort) {
      const body = { type: "thinking_level_change", thinkingLevel } as const;
      log.add({ id: `${idOf(line)}.effort`, time: timeOf(line), body, rest: () => [] }, []);
    }
    this.#model = model ?? this.#model;
    this.#effort = thinkingLevel ?? this.#effort;
  }

  #compaction(line: ForeignLine, payload: JsonObject, marks: JsonObject | null, log: ForeignLogSink): void {
    this.#release();
    const message = textIn(payload.message) ?? "";
    const summary = marks === null ? historyOf(payload) || message || "(nothing)" : message;
    const { firstKeptEntryId, tokensBefore, details, ...spent } = marks ?? {};
    const usage = this.#summaryUsage ?? null;
    this.#summaryUsage = undefined;
    const body: ForeignBody = {
      type: "compaction",
      summary,
      // The history that Codex keeps is part of its summary, so no earlier entry is kept.
      firstKeptEntryId: textIn(firstKeptEntryId) ?? idOf(line),
      tokensBefore: typeof tokensBefore === "number" ? tokensBefore : this.#tokens,
      ...(details === undefined ? {} : { details }),
      ...(usage === null || usage.totalTokens === 0 ? spendingIn(spent) : { usage }),
    };
    this.#add(line, body, marks, log);
  }

  /** Handles a rollback: moves the leaf to before the turns that the user took back. */
  #back(line: ForeignLine, { num_turns: count }: JsonObject, log: ForeignLogSink): void {
    this.#release();
    const taken = typeof count === "number" && Number.isInteger(count) && count > 0 ? count : 0;
    const from = Math.max(0, this.#turns.length - taken);
    const turn = this.#turns[from];
    if (turn === undefined) log.keep(line, { time: timeOf(line) });
    else log.move(idOf(line), turn, line);
    this.#turns.length = from;
  }

  #add(line: ForeignLine, body: ForeignBody, marks: JsonObject | null, log: ForeignLogSink): void {
    const rest = marks === null ? patchesOfLines([line]) : undefined;
    log.add({ id: textIn(marks?.id) ?? idOf(line), time: timeOf(line), body, rest }, [line]);
  }

  /** Emits the open answer and the deferred outputs. The last `counted` of its lines are token counts. */
  #release(counted = 0): void {
    const [answer, after, log] = [this.#answer, this.#after, this.#log];
    this.#answer = null;
    this.#after = [];
    if (answer === null || log === null) return;
    const last = counted > 0 ? answer.lines.length : answer.lastItem + 1;
    const lines = answer.lines.slice(0, last);
    const message = this.#messageOf(answer);
    const [first] = lines as [ForeignLine];
    const id = textIn(answer.marks?.id) ?? idOf(first);
    const rest = answer.marks === null ? patchesOfLines(lines, answer.items) : undefined;
    log.add({ id, time: timeOf(first), body: { type: "message", message }, rest }, lines);
    for (const line of answer.lines.slice(last)) log.keep(line, { time: timeOf(line) });
    for (const act of after) act();
  }

  #messageOf({ items, marks, usage }: OpenAnswer): AssistantMessage {
    const answer = answerOfItems([...items.values()]);
    const model = this.#model === undefined ? {} : { model: this.#model };
    const counts = usage === null || usage.totalTokens === 0 ? {} : { usage };
    if (marks === null) return { provider: this.#provider, ...answer, ...model, ...counts };
    return { ...answer, ...answerSettings(marks), ...counts };
  }
}

/** The item in a line; also thinking, which Skein writes as an event so that Codex does not send it to the model. */
function itemIn(value: JsonObject, payload: JsonObject, marks: JsonObject | null): JsonObject | null {
  if (value.type === "response_item") {
    // The output of a model that makes a summary is not an answer of the conversation.
    return isOfSummary(value) ? null : marked(payload, marks);
  }
  if (payload.type !== "agent_reasoning" || marks?.thinking !== true) return null;
  const sealed = marks.signature === undefined ? {} : { encrypted_content: marks.signature };
  return { type: "reasoning", content: [{ text: payload.text ?? "" }], ...sealed };
}

/** Whether the line is output of a model that makes a summary. */
function isOfSummary({ metadata }: JsonObject): boolean {
  return isFields(metadata) && metadata.compaction_output === true;
}

/** Marks a message that Skein wrote as the user's, so that it is not taken for one of Codex's own messages. */
function marked(payload: JsonObject, marks: JsonObject | null): JsonObject {
  if (marks === null || payload.type !== "message" || payload.role === "assistant") return payload;
  return { ...payload, role: "user", internal_chat_message_metadata_passthrough: { content_item_kinds: ["user"] } };
}

function inputOf(item: JsonObject, marks: JsonObject | null): ForeignBody | null {
  const parts = contentOfItem(item.content);
  if (parts === null) return null;
  const content = textOrParts(parts);
  const spoken = bodyOfMarks(marks ?? {}, content);
  if (spoken !== null) return spoken;
  return { type: "message", message: { role: marks?.role === "system" ? "system" : "user", content } };
}

/**
 * Restores the original lines of an entry from the lines that `itemsOfMessage` makes: a patch for each line with an item, the
 * verbatim text for every other line.
 */
function patchesOfLines(
  lines: readonly ForeignLine[],
  items: ReadonlyMap<number, JsonObject> = new Map([[0, {}]]),
): FindRest {
  return (entry, report) => {
    const plain = entry.type === "message" ? itemsOfMessage(entry.message, report) : [];
    const found = [...items.values()];
    const same =
      plain.length === found.length && (lines.length === 1 || plain.every((item, at) => sameKind(item, found[at])));
    if (!same) return lines.map(({ text }) => text);
    let next = 0;
    return lines.map(({ text, value }, index) => {
      if (!items.has(index)) return text;
      const line = { type: "response_item", payload: plain[next++] as JsonObject };
      return (diffJson(value, line) ?? {}) as unknown as JsonValue;
    });
  };
}

function sameKind(a: JsonObject, b: JsonObject | undefined): boolean {
  return b !== undefined && kindOfItem(a) === kindOfItem(b);
}

/** The text that Codex keeps at a compaction: the user's messages and the summary, without its own instructions. */
function historyOf({ replacement_history: history }: JsonObject): string {
  const items = (Array.isArray(history) ? (history as readonly JsonValue[]) : []).filter(isFields);
  const said = items.filter((item) => item.type === "message" && item.role !== "developer" && !isOfProgram(item));
  return said
    .map(textOfItem)
    .filter((text) => text !== "")
    .join("\n\n");
}

function spawnerOf(source: JsonValue | undefined): string | undefined {
  const agent = isFields(source) ? source.subagent : undefined;
  const spawn = isFields(agent) ? agent.thread_spawn : undefined;
  return isFields(spawn) ? textIn(spawn.parent_thread_id) : undefined;
}

/** The tokens of the whole session in token counts; undefined if they are not recorded. */
function totalIn(counts: JsonValue | undefined): number | undefined {
  return usageOfCodex(counts)?.totalTokens;
}

function effortIn({ collaboration_mode: mode }: JsonObject): string | undefined {
  return isFields(mode) && isFields(mode.settings) ? textIn(mode.settings.reasoning_effort) : undefined;
}

/** The id that Codex gave the item, else an id derived from the line's text. */
function idOf({ value, text }: ForeignLine): string {
  const payload = isFields(value) ? value.payload : undefined;
  return (isFields(payload) ? textIn(payload.id) : undefined) ?? `line-${digest(text).slice(0, 24)}`;
}

function timeOf({ value }: ForeignLine): JsonValue | undefined {
  return isFields(value) ? value.timestamp : undefined;
}

/**
 * Converts lines of early Codex versions to the present form. In early files the first line was a bare header and the others
 * bare items, without the kind of line and without a timestamp.
 */
class EarlyLines {
  #startedAt: string | null = null;
  /** How often each line occurred, by its digest. Repeated lines get different timestamps, so they are not duplicates. */
  readonly #times = new Map<string, number>();

  /** Converts a line; a line that has the present form or is unknown is returned unchanged. */
  present(line: ForeignLine): ForeignLine {
    const { value, text } = line;
    if (!isFields(value) || "payload" in value) return line;
    if (isEarlyHeader(value)) {
      this.#startedAt = textIn(value.timestamp) ?? null;
      const payload = { originator: "codex_cli_rs", cli_version: "0.0.0", ...value };
      return formed(line, { timestamp: this.#startedAt, type: "session_meta", payload });
    }
    if (this.#startedAt === null || typeof value.type !== "string") return line;
    const digest = createHash("sha1").update(text).digest("base64");
    const times = this.#times.get(digest) ?? 0;
    this.#times.set(digest, times + 1);
    const timestamp = timestampOf(Date.parse(this.#startedAt) + times);
    return formed(line, { timestamp, type: "response_item", payload: value });
  }
}

function isEarlyHeader({ id, timestamp, type }: JsonObject): boolean {
  return type === undefined && typeof id === "string" && !Number.isNaN(Date.parse(textIn(timestamp) ?? ""));
}

function formed({ number }: ForeignLine, value: JsonObject): ForeignLine {
  return { number, value, text: JSON.stringify(value) };
}
