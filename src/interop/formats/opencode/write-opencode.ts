import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import { type Entry, isNode } from "../../../session/log/entry.ts";
import { type AssistantMessage, type Content, partsOf, type ToolMessage } from "../../../session/message.ts";
import type { ForeignSource } from "../foreign-format.ts";
import { noteOf } from "../foreign-note.ts";
import { pathOf } from "../foreign-path.ts";
import type { WriteReport } from "../foreign-report.ts";
import { isFields } from "../foreign-values.ts";
import { KeptLines } from "../kept-line.ts";
import { marksOfBody } from "../own-marks.ts";
import { foreignRest, type JsonPatch, applyPatch } from "../json-patch.ts";
import { OpencodeIds } from "./opencode-id.ts";
import { opencodeOfUsage, partOfCall, partOfContent } from "./opencode-part.ts";
import { FINISHES, type OpencodeRest } from "./read-opencode.ts";

type Answer = Extract<Entry, { type: "message" }> & { readonly message: AssistantMessage };

/** A model in the form of opencode's user messages. */
interface Model extends JsonObject {
  readonly providerID: string;
  readonly modelID: string;
}

/** The model written if no entry of the session names one. */
const UNKNOWN_MODEL: Model = { providerID: "unknown", modelID: "unknown" };
const NO_MODEL_NOTE =
  "The session names no model, which opencode requires: its UI continues with the configured model, and opencode run needs --model PROVIDER/MODEL.";

/** The model that Claude Code records for answers that it wrote itself, such as API errors. */
const NO_MODEL = "<synthetic>";

/** The entry types that are written as messages. */
const SPOKEN: ReadonlySet<string> = new Set(["message", "custom_message", "branch_summary", "compaction"]);

/** A message of an export. */
interface Written {
  readonly info: JsonObject;
  readonly parts: readonly JsonObject[];
}

/** Writes the current branch of a session as an export of opencode, which has no branches. */
export async function* writeOpencode(
  source: ForeignSource,
  report: WriteReport,
): AsyncGenerator<string, void, undefined> {
  const path = await pathOf(source);
  yield `{"info":${JSON.stringify(await infoOf(source))},"messages":[`;
  const writer = new MessageWriter(source, report, await modelsOf(source, path.ids));
  const lines = new KeptLines("opencode");
  let [answer, results]: [Answer | null, Map<string, ToolResult>] = [null, new Map()];
  /** The ids of the calls of `answer`. */
  let calls: ReadonlySet<string> = new Set();
  let separator = "\n";
  const flush = function* (messages: readonly Written[]): Generator<string, void, undefined> {
    for (const message of messages) {
      yield separator + JSON.stringify(message);
      separator = ",\n";
    }
  };
  for await (const entry of source.entries()) {
    if (!isNode(entry)) {
      if (entry.type !== "leaf" && entry.type !== "session_info") report.omit(entry.type);
      continue;
    }
    if (!path.ids.has(entry.id)) {
      report.omit("entry on another branch");
      continue;
    }
    if (entry.type === "message" && entry.message.role === "tool") {
      if (!calls.has(entry.message.toolCallId)) report.omit("result without a call");
      else results.set(entry.message.toolCallId, { entry, message: entry.message });
      continue;
    }
    const line = lines.take(entry);
    if (line === null) continue;
    // Entries that are not written as messages do not separate a call from its result.
    if (line !== undefined || SPOKEN.has(entry.type)) {
      if (answer !== null) yield* flush([writer.answer(answer, results)]);
      [answer, results] = [isAnswer(entry) ? entry : null, new Map()];
      calls = new Set(answer?.message.toolCalls?.map(({ id }) => id));
    }
    if (line !== undefined) yield* flush([writer.verbatim(entry, line)]);
    else if (!isAnswer(entry)) yield* flush(writer.other(entry));
  }
  if (answer !== null) yield* flush([writer.answer(answer, results)]);
  yield "\n]}\n";
}

/** The result of a call, and its entry. */
interface ToolResult {
  readonly entry: Entry;
  readonly message: ToolMessage;
}

class MessageWriter {
  readonly #source: ForeignSource;
  readonly #report: WriteReport;
  readonly #sessionId: string;
  readonly #ids = new OpencodeIds();
  /** From entry ids to message ids. */
  readonly #messageIds = new Map<string, string>();
  #lastInput: string | undefined;
  readonly #models: Models;
  /** How many answers were written. */
  #answered = 0;
  /** The model of the last answer or model change. */
  #model: Model | null = null;

  constructor(source: ForeignSource, report: WriteReport, models: Models) {
    this.#source = source;
    this.#report = report;
    this.#sessionId = source.foreignId;
    this.#models = models;
  }

  verbatim(entry: Entry, line: string): Written {
    this.#report.verbatim++;
    const value: unknown = JSON.parse(line);
    return this.#put(entry, ...spokenIn(isFields(value) ? value : {}));
  }

  answer(entry: Answer, results: ReadonlyMap<string, ToolResult>): Written {
    this.#report.written += 1 + results.size;
    this.#model = this.#models.answered[this.#answered++] ?? this.#model;
    const { message, timestamp } = entry;
    const time = Date.parse(timestamp);
    const said = partsOf(message.content).map((part) => partOfContent(part, time, message.provider));
    const calls = (message.toolCalls ?? []).map((call) => {
      const result = results.get(call.id);
      const part = partOfCall(call, result?.message, time, this.#report);
      return result === undefined ? part : { ...part, metadata: { skeinResult: stampOf(result.entry) } };
    });
    const rest = restOfEntry(entry);
    if (rest !== undefined && "parts" in rest) {
      let [nextSaid, nextCall] = [0, 0];
      const parts = rest.parts.map((change): JsonObject => {
        if ("as" in change) return change.as as JsonObject;
        const [plain, rests] =
          "said" in change ? [said[nextSaid++], change.said] : [withoutMark(calls[nextCall++]), change.call];
        return applyPatch<JsonObject>(plain ?? {}, rests as unknown as JsonPatch);
      });
      return this.#put(entry, rest.info, parts);
    }
    const { provider = "unknown", model = "unknown", usage, cost = 0, stopReason } = message;
    const finish = FINISHES.find(([, reason]) => reason === stopReason)?.[0];
    const info = {
      ...this.#answerInfo(time, { providerID: provider, modelID: model }),
      cost,
      tokens: opencodeOfUsage(usage),
      ...(finish === undefined ? {} : { finish }),
    };
    const marks = stopReason === undefined || finish !== undefined ? {} : { stopReason };
    return this.#put(entry, info, [...said, ...calls], marks);
  }

  /** The messages for an entry that is not an answer; empty if the format has no counterpart. */
  other(entry: Entry): Written[] {
    const rest = restOfEntry(entry);
    if (rest !== undefined && "message" in rest) {
      this.#report.written++;
      return [this.#put(entry, ...spokenIn(rest.message))];
    }
    switch (entry.type) {
      case "message":
        return entry.message.role === "user"
          ? [this.#input(entry, entry.message.content, {}, rest)]
          : this.#leave("system message");
      case "custom_message":
      case "branch_summary": {
        const { content, marks } = marksOfBody(entry);
        return [this.#input(entry, content, marks)];
      }
      case "compaction":
        return this.#compaction(entry);
      case "model_change":
        this.#model = { providerID: entry.provider, modelID: entry.modelId };
        return [];
      default:
        return this.#leave(entry.type);
    }
  }

  #input(entry: Entry, content: Content, marks: JsonObject, rest?: OpencodeRest): Written {
    this.#report.written++;
    const time = Date.parse(entry.timestamp);
    const plain = partsOf(content).map((part) => partOfContent(part, time));
    if (rest !== undefined && "parts" in rest) {
      let next = 0;
      const parts = rest.parts.map((change) =>
        "as" in change
          ? (change.as as JsonObject)
          : applyPatch<JsonObject>(plain[next++] ?? {}, (change as { said: JsonPatch }).said),
      );
      return this.#put(entry, rest.info, parts);
    }
    return this.#put(
      entry,
      { role: "user", time: { created: time }, agent: "build", model: this.#askedModel() },
      plain,
      marks,
    );
  }

  #compaction(entry: Extract<Entry, { type: "compaction" }>): Written[] {
    this.#report.written++;
    const { id, parentId, timestamp, summary, firstKeptEntryId, tokensBefore, details, usage, cost = 0 } = entry;
    const time = Date.parse(timestamp);
    const tail = this.#messageIds.get(firstKeptEntryId);
    const part = { type: "compaction", auto: false, ...(tail === undefined ? {} : { tail_start_id: tail }) };
    const model = this.#model ?? this.#askedModel();
    const asking = { role: "user", time: { created: time }, agent: "build", model };
    const asked = this.#put({ ...entry, id: `${id}.asked`, parentId }, asking, [part]);
    const answering = { ...this.#answerInfo(time, model), mode: "compaction", agent: "compaction" };
    const info = { ...answering, summary: true, cost, tokens: opencodeOfUsage(usage), finish: "stop" };
    const marks = { type: "compaction", firstKeptEntryId, tokensBefore, ...detailsOf(details) };
    return [asked, this.#put(entry, info, [{ type: "text", text: summary }], marks)];
  }

  /**
   * The model for a user message: that of the answer to it, else the last one. opencode resumes a session with the model of the
   * latest user message.
   */
  #askedModel(): Model {
    const model = this.#models.answered[this.#answered] ?? this.#model ?? this.#models.started;
    if (model !== null) return model;
    this.#report.notes.add(NO_MODEL_NOTE);
    return UNKNOWN_MODEL;
  }

  #answerInfo(time: number, { providerID, modelID }: Model): JsonObject {
    return {
      role: "assistant",
      ...(this.#lastInput === undefined ? {} : { parentID: this.#lastInput }),
      mode: "build",
      agent: "build",
      path: { cwd: this.#source.cwd, root: this.#source.cwd },
      providerID,
      modelID,
      time: { created: time, completed: time },
    };
  }

  #leave(type: string): Written[] {
    this.#report.omit(type);
    return [];
  }

  /** Sets the ids of a message and its parts; valid ids of opencode are kept. `marks`: data that opencode has no field for. */
  #put(entry: Entry, info: JsonObject, parts: readonly JsonObject[], marks?: JsonObject): Written {
    const time = Date.parse(entry.timestamp);
    const id = ownId("msg", info.id) ?? this.#ids.next("msg", time, entry.id);
    this.#ids.seen(id);
    if (info.role === "user") this.#lastInput = id;
    this.#messageIds.set(entry.id, id);
    const ids = { sessionID: this.#sessionId, messageID: id };
    const named = parts.map((part, index) => {
      const partId = ownId("prt", part.id) ?? this.#ids.next("prt", time, `${entry.id}.${index}`);
      const own = isFields(part.metadata) ? part.metadata : {};
      const mark = marks === undefined || index > 0 ? {} : { metadata: { ...own, skein: { id: entry.id, ...marks } } };
      return { ...part, ...mark, id: partId, ...ids };
    });
    return { info: { ...info, id, sessionID: this.#sessionId }, parts: named };
  }
}

/** The models of a session. */
interface Models {
  /** For each answer on the path, its model or, if it names none, that of the next answer that does; else null. */
  readonly answered: readonly (Model | null)[];
  /** The model of the last run that started, whether or not it has answered; null if no run names one. */
  readonly started: Model | null;
}

async function modelsOf({ entries }: ForeignSource, path: ReadonlySet<string>): Promise<Models> {
  const answered: (Model | null)[] = [];
  let started: Model | null = null;
  for await (const entry of entries()) {
    if (path.has(entry.id) && isAnswer(entry)) answered.push(modelOf(entry.message));
    if (entry.type === "run" && entry.phase === "started") started = modelNamed(entry.model) ?? started;
  }
  for (let index = answered.length - 2; index >= 0; index--) answered[index] ??= answered[index + 1] ?? null;
  return { answered, started };
}

function modelNamed(name = ""): Model | null {
  const [providerID = "", ...rest] = name.split("/");
  const modelID = rest.join("/");
  return providerID === "" || modelID === "" ? null : { providerID, modelID };
}

function modelOf({ provider, model }: AssistantMessage): Model | null {
  return provider === undefined || model === undefined || model === NO_MODEL
    ? null
    : { providerID: provider, modelID: model };
}

/** The `info` object of the export. */
async function infoOf({ header, cwd, foreignId, entries }: ForeignSource): Promise<JsonObject> {
  const created = Date.parse(header.createdAt);
  // opencode generates a title for a session that has this default title.
  let [title, updated] = [`New session - ${header.createdAt}`, created];
  for await (const entry of entries()) {
    if (entry.type === "session_info") title = entry.name;
    updated = Date.parse(entry.timestamp);
  }
  const note = noteOf(header, "opencode")?.rest ?? {};
  const plain = { slug: "skein", projectID: "global", version: "0.0.0", time: { created, updated } };
  return { ...plain, ...usableInfo(note), id: foreignId, directory: cwd, title };
}

/** The fields of `info` that opencode uses in file names, each with the form that opencode writes. */
const NAMES: Readonly<Record<string, RegExp>> = {
  slug: /^[a-z0-9]{1,64}(?:-[a-z0-9]{1,64}){0,8}$/,
  projectID: /^(?:global|[0-9a-f]{40})$/,
  parentID: /^ses_[0-9A-Za-z]{26}$/,
  path: /^(?!\/)(?!(?:.*\/)?\.\.(?:\/|$))[^\\\p{Cc}]{0,4096}$/u,
};

/**
 * The fields of an imported `info` that are safe to give to opencode. The file is untrusted: names that could leave a
 * directory are dropped, and so are permission rules that would let a tool run without asking.
 */
function usableInfo(info: JsonObject): JsonObject {
  const { permission, ...others } = info;
  const named = Object.entries(others).filter(([field, value]) => {
    const form = Object.hasOwn(NAMES, field) ? NAMES[field] : undefined;
    return form === undefined || (typeof value === "string" && form.test(value));
  });
  const rules = Array.isArray(permission) ? (permission as readonly JsonValue[]).filter(isFields) : [];
  const strict = rules.filter(({ action }) => action === "ask" || action === "deny");
  return { ...Object.fromEntries(named), ...(permission === undefined ? {} : { permission: strict }) };
}

/** The id if it has the form of opencode's message or part ids; undefined if a new one is needed. */
function ownId(kind: "msg" | "prt", id: JsonValue | undefined): string | undefined {
  return typeof id === "string" && id.startsWith(`${kind}_`) && /^\w{5,64}$/.test(id) ? id : undefined;
}

function restOfEntry(entry: Entry): OpencodeRest | undefined {
  const rest = foreignRest(entry, "opencode");
  if (!isFields(rest)) return undefined;
  const whole = isFields(rest.message) || (isFields(rest.info) && isRestOfParts(rest.parts));
  return whole ? (rest as unknown as OpencodeRest) : undefined;
}

function isRestOfParts(parts: JsonValue | undefined): boolean {
  return Array.isArray(parts) && parts.every((part) => isFields(part) && (!("as" in part) || isFields(part.as)));
}

/** The info and the parts of a message; empty if they do not have the expected form. */
function spokenIn({ info, parts }: JsonObject): [info: JsonObject, parts: readonly JsonObject[]] {
  const said = Array.isArray(parts) ? (parts as readonly JsonValue[]).filter(isFields) : [];
  return [isFields(info) ? info : {}, said];
}

function isAnswer(entry: Entry): entry is Answer {
  return entry.type === "message" && entry.message.role === "assistant";
}

function stampOf({ id, timestamp }: Entry): JsonObject {
  return { id, time: timestamp };
}

function withoutMark(part: JsonObject | undefined): JsonObject {
  const { metadata: _, ...others } = part ?? {};
  return others;
}

function detailsOf(details: JsonObject[string] | undefined): JsonObject {
  return details === undefined ? {} : { details };
}
