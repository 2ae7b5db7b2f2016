import type { JsonObject } from "../../../internal/json.ts";
import { type Entry, isNode } from "../../../session/log/entry.ts";
import { type AssistantMessage, type Content, partsOf, type ToolMessage } from "../../../session/message.ts";
import type { ForeignSource } from "../foreign-format.ts";
import { noteOf } from "../foreign-note.ts";
import { pathOf } from "../foreign-path.ts";
import type { WriteReport } from "../foreign-report.ts";
import { isFields, textIn } from "../foreign-values.ts";
import { KeptLines } from "../kept-line.ts";
import { spokenMarks } from "../own-marks.ts";
import { foreignRest, type Rest, withRest } from "../rest-of.ts";
import { OpencodeIds, opencodeSessionId } from "./opencode-id.ts";
import { opencodeOfUsage, partOfCall, partOfContent } from "./opencode-part.ts";
import { FINISHES, type OpencodeRest } from "./read-opencode.ts";

type Answer = Extract<Entry, { type: "message" }> & { readonly message: AssistantMessage };

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
  const writer = new MessageWriter(source, report);
  const lines = new KeptLines("opencode");
  let [answer, results]: [Answer | null, Map<string, ToolResult>] = [null, new Map()];
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
      if (answer?.message.toolCalls?.some(({ id }) => id === (entry.message as ToolMessage).toolCallId) !== true)
        report.leave("result without a call");
      else results.set(entry.message.toolCallId, { entry, message: entry.message });
      continue;
    }
    const line = lines.take(entry);
    if (line === null) continue;
    // What says nothing does not come between a call and its result.
    if (line !== undefined || SPOKEN.has(entry.type)) {
      if (answer !== null) yield* flush([writer.answer(answer, results)]);
      [answer, results] = [isAnswer(entry) ? entry : null, new Map()];
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
  #model: { readonly providerID: string; readonly modelID: string } = { providerID: "unknown", modelID: "unknown" };

  constructor(source: ForeignSource, report: WriteReport) {
    this.#source = source;
    this.#report = report;
    this.#sessionId = opencodeSessionId(source.foreignId);
  }

  verbatim(entry: Entry, line: string): Written {
    this.#report.verbatim++;
    const { info, parts } = JSON.parse(line) as { info?: JsonObject; parts?: readonly JsonObject[] };
    return this.#put(entry, info ?? {}, parts ?? []);
  }

  answer(entry: Answer, results: ReadonlyMap<string, ToolResult>): Written {
    this.#report.written += 1 + results.size;
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
      const parts = rest.parts.map((change): JsonObject => {
        if ("as" in change) return change.as as JsonObject;
        const [plain, rests] =
          "said" in change ? [said.shift(), change.said] : [withoutMark(calls.shift()), change.call];
        return withRest<JsonObject>(plain ?? {}, rests as unknown as Rest);
      });
      return this.#put(entry, rest.info, parts);
    }
    const { provider = "unknown", model = "unknown", usage, cost = 0, stopReason } = message;
    const finish = FINISHES.find(([, reason]) => reason === stopReason)?.[0];
    const info = {
      ...this.#answerInfo(time, provider, model),
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
      const { info, parts } = rest.message;
      return [this.#put(entry, info as JsonObject, parts as unknown as readonly JsonObject[])];
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
      const parts = rest.parts.map((change) =>
        "as" in change
          ? (change.as as JsonObject)
          : withRest<JsonObject>(plain.shift() ?? {}, (change as { said: Rest }).said),
      );
      return this.#put(entry, rest.info, parts);
    }
    return this.#put(
      entry,
      { role: "user", time: { created: time }, agent: "build", model: this.#model },
      plain,
      marks,
    );
  }

  #compaction(entry: Extract<Entry, { type: "compaction" }>): Written[] {
    this.#report.written++;
    const { id, parentId, timestamp, summary, firstKeptEntryId, tokensBefore, details } = entry;
    const time = Date.parse(timestamp);
    const tail = this.#messageIds.get(firstKeptEntryId);
    const part = { type: "compaction", auto: false, ...(tail === undefined ? {} : { tail_start_id: tail }) };
    const asking = { role: "user", time: { created: time }, agent: "build", model: this.#model };
    const asked = this.#put({ ...entry, id: `${id}.asked`, parentId }, asking, [part]);
    const { providerID, modelID } = this.#model;
    const answering = { ...this.#answerInfo(time, providerID, modelID), mode: "compaction", agent: "compaction" };
    const info = { ...answering, summary: true, cost: 0, tokens: opencodeOfUsage(undefined), finish: "stop" };
    const marks = { type: "compaction", firstKeptEntryId, tokensBefore, ...detailsOf(details) };
    return [asked, this.#put(entry, info, [{ type: "text", text: summary }], marks)];
  }

  #answerInfo(time: number, providerID: string, modelID: string): JsonObject {
    this.#model = { providerID, modelID };
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
    const id = textIn(info.id) ?? this.#ids.next("msg", time, entry.id);
    this.#ids.seen(id);
    if (info.role === "user") this.#lastInput = id;
    this.#messageIds.set(entry.id, id);
    const ids = { sessionID: this.#sessionId, messageID: id };
    const named = parts.map((part, index) => {
      const partId = textIn(part.id) ?? this.#ids.next("prt", time, `${entry.id}.${index}`);
      const own = isFields(part.metadata) ? part.metadata : {};
      const mark = marks === undefined || index > 0 ? {} : { metadata: { ...own, skein: { id: entry.id, ...marks } } };
      return { ...part, ...mark, id: partId, ...ids };
    });
    return { info: { ...info, id, sessionID: this.#sessionId }, parts: named };
  }
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
  return { ...plain, ...note, id: opencodeSessionId(foreignId), directory: cwd, title };
}

function restOfEntry(entry: Entry): OpencodeRest | undefined {
  return foreignRest(entry, "opencode") as unknown as OpencodeRest | undefined;
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
