import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import { type Entry, isNode } from "../../../session/log/entry.ts";
import { type AssistantMessage, type Content, partsOf, type ToolMessage } from "../../../session/message.ts";
import type { ForeignSource } from "../foreign-format.ts";
import { noteOf } from "../foreign-note.ts";
import { pathOf } from "../foreign-path.ts";
import type { WriteReport } from "../foreign-report.ts";
import { isFields } from "../foreign-values.ts";
import { KeptLines } from "../kept-line.ts";
import { spokenMarks } from "../own-marks.ts";
import { foreignRest, type Rest, withRest } from "../rest-of.ts";
import { OpencodeIds } from "./opencode-id.ts";
import { opencodeOfUsage, partOfCall, partOfContent } from "./opencode-part.ts";
import { FINISHES, type OpencodeRest } from "./read-opencode.ts";

type Answer = Extract<Entry, { type: "message" }> & { readonly message: AssistantMessage };

/** A model as opencode names it in the messages of a user. */
interface Model extends JsonObject {
  readonly providerID: string;
  readonly modelID: string;
}

/** The model of a session that names none anywhere. */
const UNKNOWN_MODEL: Model = { providerID: "unknown", modelID: "unknown" };

/** What Claude Code writes where it answered itself, as when the API refused the request. */
const NO_MODEL = "<synthetic>";

/** The entries that are messages of opencode's. */
const SPOKEN: ReadonlySet<string> = new Set(["message", "custom_message", "branch_summary", "compaction"]);

/** A message of an export. */
interface Written {
  readonly info: JsonObject;
  readonly parts: readonly JsonObject[];
}

/** A session as an export of opencode: the branch that it stands on, as opencode knows no other. */
export async function* writeOpencode(
  source: ForeignSource,
  report: WriteReport,
): AsyncGenerator<string, void, undefined> {
  const path = await pathOf(source);
  yield `{"info":${JSON.stringify(await infoOf(source))},"messages":[`;
  const writer = new MessageWriter(source, report, await answerModels(source, path.ids));
  const lines = new KeptLines("opencode");
  let [answer, results]: [Answer | null, Map<string, ToolResult>] = [null, new Map()];
  /** The ids of the calls of that answer. */
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
      if (entry.type !== "leaf" && entry.type !== "session_info") report.leave(entry.type);
      continue;
    }
    if (!path.ids.has(entry.id)) {
      report.leave("entry on another branch");
      continue;
    }
    if (entry.type === "message" && entry.message.role === "tool") {
      if (!calls.has(entry.message.toolCallId)) report.leave("result without a call");
      else results.set(entry.message.toolCallId, { entry, message: entry.message });
      continue;
    }
    const line = lines.take(entry);
    if (line === null) continue;
    // What says nothing does not come between a call and its result.
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

/** What a tool answered, and the entry that says so. */
interface ToolResult {
  readonly entry: Entry;
  readonly message: ToolMessage;
}

class MessageWriter {
  readonly #source: ForeignSource;
  readonly #report: WriteReport;
  readonly #sessionId: string;
  readonly #ids = new OpencodeIds();
  /** The ids of messages, by the entries that they are. */
  readonly #messageIds = new Map<string, string>();
  #lastInput: string | undefined;
  /** The models of the answers, as `answerModels` says. */
  readonly #models: readonly (Model | null)[];
  /** How many answers were written. */
  #answered = 0;
  /** The last model that the session named. */
  #model: Model | null = null;

  constructor(source: ForeignSource, report: WriteReport, models: readonly (Model | null)[]) {
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
    this.#model = this.#models[this.#answered++] ?? this.#model;
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
        return withRest<JsonObject>(plain ?? {}, rests as unknown as Rest);
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

  /** The messages that an entry is which is no answer; none for what opencode cannot say. */
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
        const { content, marks } = spokenMarks(entry);
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
          : withRest<JsonObject>(plain[next++] ?? {}, (change as { said: Rest }).said),
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

  /** opencode goes on with the model of the latest message of the user: the one that answered it, else the one before. */
  #askedModel(): Model {
    return this.#models[this.#answered] ?? this.#model ?? UNKNOWN_MODEL;
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
    this.#report.leave(type);
    return [];
  }

  /** Gives a message and its parts their ids. Those that opencode gave stay; `marks` are what it cannot say. */
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

/** The model of each answer on a path, or of the next one that names any; null where none does. */
async function answerModels({ entries }: ForeignSource, path: ReadonlySet<string>): Promise<(Model | null)[]> {
  const models: (Model | null)[] = [];
  for await (const entry of entries()) if (path.has(entry.id) && isAnswer(entry)) models.push(modelOf(entry.message));
  for (let index = models.length - 2; index >= 0; index--) models[index] ??= models[index + 1] ?? null;
  return models;
}

function modelOf({ provider, model }: AssistantMessage): Model | null {
  return provider === undefined || model === undefined || model === NO_MODEL
    ? null
    : { providerID: provider, modelID: model };
}

/** What the export says of the session. */
async function infoOf({ header, cwd, foreignId, entries }: ForeignSource): Promise<JsonObject> {
  const created = Date.parse(header.createdAt);
  // opencode looks for a name of its own for a session that is called so.
  let [title, updated] = [`New session - ${header.createdAt}`, created];
  for await (const entry of entries()) {
    if (entry.type === "session_info") title = entry.name;
    updated = Date.parse(entry.timestamp);
  }
  const note = noteOf(header, "opencode")?.rest ?? {};
  const plain = { slug: "skein", projectID: "global", version: "0.0.0", time: { created, updated } };
  return { ...plain, ...usableInfo(note), id: foreignId, directory: cwd, title };
}

/** The fields of opencode's `info` that it makes file names of, each with the form that it writes itself. */
const NAMES: Readonly<Record<string, RegExp>> = {
  slug: /^[a-z0-9]{1,64}(?:-[a-z0-9]{1,64}){0,8}$/,
  projectID: /^(?:global|[0-9a-f]{40})$/,
  parentID: /^ses_[0-9A-Za-z]{26}$/,
  path: /^(?!\/)(?!(?:.*\/)?\.\.(?:\/|$))[^\\\p{Cc}]{0,4096}$/u,
};

/**
 * What the file that the session was imported from says of it, as far as opencode may take it over: it comes from anyone,
 * so that no name leads out of a directory, and no rule lets a tool run unasked.
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

/** The id of a message or part where it has opencode's letters; undefined where it needs a new one. */
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

/** What a message of an export says; what has no such form says nothing. */
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
