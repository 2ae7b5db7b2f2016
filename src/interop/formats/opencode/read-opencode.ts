import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import type { AssistantMessage, ContentPart, StopReason, ToolCall } from "../../../session/message.ts";
import type {
  FindRest,
  ForeignBody,
  ForeignLine,
  ForeignLogSink,
  ForeignReader,
  ForeignSink,
} from "../foreign-format.ts";
import { timestampOf } from "../foreign-log.ts";
import { isFields, textIn, textOrParts } from "../foreign-values.ts";
import { answerSettings, bodyOfMarks } from "../own-marks.ts";
import { diffJson } from "../json-patch.ts";
import {
  callOfPart,
  contentOfPart,
  isKnownPart,
  partOfCall,
  partOfContent,
  resultOfPart,
  usageOfOpencode,
} from "./opencode-part.ts";

/** Pairs of opencode's finish reason and our stop reason. */
export const FINISHES: readonly (readonly [string, StopReason])[] = [
  ["stop", "stop"],
  ["tool-calls", "tool_calls"],
  ["length", "length"],
  ["content-filter", "content_filter"],
  ["error", "error"],
];

/** The data stored with an imported entry: the whole message, or its info and a change for each part. */
export type OpencodeRest =
  | { readonly message: JsonObject }
  | { readonly info: JsonObject; readonly parts: readonly PartRest[] };

/** `as`: a part without a counterpart, verbatim; `said`: the patch of a content part; `call`: the patch of a call. */
export type PartRest = { readonly as: JsonValue } | { readonly said: JsonValue } | { readonly call: JsonValue };

/** The default titles of opencode. */
const UNNAMED = /^(?:New|Child) session - \d{4}-\d{2}-\d{2}T/;

/** A message of an export. */
interface ExportedMessage {
  readonly line: ForeignLine;
  readonly info: JsonObject;
  readonly parts: readonly JsonObject[];
  readonly id: string;
  readonly time: JsonValue | undefined;
  /** The marks that Skein wrote into it. */
  readonly marks: JsonObject | null;
}

/** Reads an export of opencode: one JSON document with a session and its messages. */
export class OpencodeReader implements ForeignReader {
  readonly #sink: ForeignSink;

  constructor(sink: ForeignSink) {
    this.#sink = sink;
  }

  line(line: ForeignLine): void {
    const { info, messages } = isFields(line.value) ? line.value : {};
    const id = isFields(info) ? textIn(info.id) : undefined;
    if (!isFields(info) || id === undefined || !Array.isArray(messages)) {
      this.#sink.report.lose(line.number, "it is not an export of opencode");
      return;
    }
    const parent = textIn(info.parentID);
    const time = isFields(info.time) ? info.time.created : undefined;
    const log = this.#sink.begin({
      foreignId: id,
      ...(parent === undefined ? {} : { parentForeignId: parent }),
      createdAt: timestampOf(time),
      cwd: textIn(info.directory) ?? null,
      version: textIn(info.version) ?? null,
      rest: info,
    });
    const title = textIn(info.title);
    if (title !== undefined && !UNNAMED.test(title))
      log.add({ id: "title", time, body: { type: "session_info", name: title } }, []);
    const spoken = (messages as readonly JsonValue[]).map(spokenOf);
    for (const { info: about, parts } of spoken) {
      if (about.role !== "user" && about.role !== "assistant")
        this.#sink.report.countUnknown(`message/${textIn(about.role) ?? ""}`);
      for (const { type } of parts)
        if (!isKnownPart(type)) this.#sink.report.countUnknown(`part/${textIn(type) ?? ""}`);
    }
    for (const [index, message] of spoken.entries()) readMessage(message, spoken[index - 1], spoken[index + 1], log);
  }

  end(): void {}
}

function readMessage(
  message: ExportedMessage,
  before: ExportedMessage | undefined,
  after: ExportedMessage | undefined,
  log: ForeignLogSink,
): void {
  const { line, id, time, marks } = message;
  const asked = message.parts.some((part) => part.type === "compaction");
  const body = asked ? null : bodyOf(message, before);
  // Skein writes a compaction as two messages; the second holds all of its data.
  if (asked && after?.marks?.type === "compaction") log.alias(id, log.leafId);
  else if (body === null) log.keep(line, { id, time });
  else {
    const rest = marks === null ? restIn(message) : undefined;
    log.add({ id: textIn(marks?.id) ?? id, time, body, rest }, [line]);
    if (body.type === "message" && body.message.role === "assistant") readResults(message, log);
  }
}

/** Adds the results of an answer's calls; opencode stores them in the parts of the calls. */
function readResults({ id, time, parts, marks }: ExportedMessage, log: ForeignLogSink): void {
  for (const part of parts) {
    const call = callOfPart(part);
    const result = call === null ? null : resultOfPart(part, call);
    if (result === null) continue;
    const own = isFields(part.metadata) && isFields(part.metadata.skeinResult) ? part.metadata.skeinResult : {};
    const stamp = { id: textIn(own.id) ?? `${id}.${result.toolCallId}`, time: own.time ?? time };
    log.add(
      { ...stamp, body: { type: "message", message: result }, ...(marks === null ? { rest: () => ({}) } : {}) },
      [],
    );
  }
}

function spokenOf(value: JsonValue, index: number): ExportedMessage {
  const { info, parts } = isFields(value) ? value : {};
  const about = isFields(info) ? info : {};
  const said = Array.isArray(parts) ? (parts as readonly JsonValue[]).filter(isFields) : [];
  const metadata = said.map((part) => part.metadata).find((each) => isFields(each) && isFields(each.skein));
  return {
    line: { number: index + 1, text: JSON.stringify(value), value },
    info: about,
    parts: said,
    id: textIn(about.id) ?? `message-${index}`,
    time: isFields(about.time) ? about.time.created : undefined,
    marks: isFields(metadata) && isFields(metadata.skein) ? metadata.skein : null,
  };
}

function bodyOf(message: ExportedMessage, before: ExportedMessage | undefined): ForeignBody | null {
  const { info, parts, marks } = message;
  const content = parts.map(contentOfPart).filter((part) => part !== null);
  if (info.role === "user") return content.length === 0 ? null : inputOf(content, marks);
  if (info.role !== "assistant") return null;
  if (info.summary === true) return compactionOf(message, before, content);
  const toolCalls = parts.map(callOfPart).filter((call) => call !== null);
  if (content.length === 0 && toolCalls.length === 0) return null;
  return { type: "message", message: answerOf(info, content, toolCalls, marks) };
}

function inputOf(parts: readonly ContentPart[], marks: JsonObject | null): ForeignBody {
  const content = textOrParts(parts);
  return bodyOfMarks(marks ?? {}, content) ?? { type: "message", message: { role: "user", content } };
}

function answerOf(
  info: JsonObject,
  parts: readonly ContentPart[],
  toolCalls: readonly ToolCall[],
  marks: JsonObject | null,
): AssistantMessage {
  const [provider, model] = [textIn(info.providerID), textIn(info.modelID)];
  const usage = usageOfOpencode(info.tokens);
  const failed = isFields(info.error) ? (info.error.name === "MessageAbortedError" ? "aborted" : "error") : undefined;
  const stopReason = failed ?? FINISHES.find(([finish]) => finish === info.finish)?.[1];
  return {
    role: "assistant",
    content: parts.length === 0 ? null : textOrParts(parts),
    ...(toolCalls.length === 0 ? {} : { toolCalls }),
    ...(provider === undefined ? {} : { provider }),
    ...(model === undefined ? {} : { model }),
    ...(usage === undefined ? {} : { usage }),
    ...costIn(info),
    ...(stopReason === undefined ? {} : { stopReason }),
    ...answerSettings(marks ?? {}),
  };
}

function compactionOf(
  { info, id, marks }: ExportedMessage,
  before: ExportedMessage | undefined,
  content: readonly ContentPart[],
): ForeignBody {
  const asked = before?.parts.find((part) => part.type === "compaction");
  const { firstKeptEntryId, tokensBefore, details } = marks ?? {};
  const usage = usageOfOpencode(info.tokens);
  return {
    type: "compaction",
    summary: content.map((part) => (part.type === "text" ? part.text : "")).join("\n") || "(nothing)",
    firstKeptEntryId: textIn(firstKeptEntryId) ?? textIn(asked?.tail_start_id) ?? id,
    tokensBefore: typeof tokensBefore === "number" ? tokensBefore : (usage?.inputTokens ?? 0),
    ...(usage === undefined ? {} : { usage }),
    ...costIn(info),
    ...(details === undefined ? {} : { details }),
  };
}

function costIn({ cost }: JsonObject): { readonly cost?: number } {
  return typeof cost === "number" && cost > 0 ? { cost } : {};
}

/** The fields of the message that the entry does not have. */
function restIn({ info, parts, time }: ExportedMessage): FindRest {
  return ({ type }, report) => {
    if (type !== "message") return { message: { info, parts } } as unknown as JsonValue;
    const at = typeof time === "number" ? time : 0;
    const changes = parts.map((part): PartRest => {
      const [content, call] = [contentOfPart(part), callOfPart(part)];
      if (content !== null) return { said: changeOf(part, partOfContent(content, at, textIn(info.providerID))) };
      if (call === null) return { as: part };
      const result = resultOfPart(part, call) ?? undefined;
      return { call: changeOf(part, partOfCall(call, result, at, report)) };
    });
    return { info, parts: changes } as unknown as JsonValue;
  };
}

function changeOf(part: JsonObject, plain: JsonObject): JsonValue {
  return (diffJson(part, plain) ?? {}) as unknown as JsonValue;
}
