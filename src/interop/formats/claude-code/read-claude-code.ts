import { basename, dirname } from "node:path";
import type { JsonObject } from "../../../internal/json.ts";
import type { ForeignLine, ForeignReader, ForeignSink } from "../foreign-format.ts";
import { isUuid } from "../foreign-id.ts";
import { isFields, textIn } from "../foreign-values.ts";
import { ConversationReader } from "./read-conversation.ts";

/** The fields that most lines of a file share. */
const COMMON_FIELDS = ["userType", "entrypoint", "cwd", "version", "gitBranch"] as const;

type ObjectLine = ForeignLine & { readonly value: JsonObject };

/** The main conversation of a file. */
interface MainConversation {
  readonly reader: ConversationReader;
  readonly foreignId: string;
  /** Whether the file is that of a sub-agent. */
  readonly sidechain: boolean;
}

/** Reads a file of Claude Code: one conversation and, in older versions, the conversations of its sub-agents as well. */
export class ClaudeCodeReader implements ForeignReader {
  readonly #sink: ForeignSink;
  readonly #path: string | null;
  #main: MainConversation | null = null;
  /** Lines before the first line that has a session id and a uuid. */
  #early: ForeignLine[] = [];
  /** From the uuid of a sub-agent's line to the reader of that sub-agent. */
  readonly #sidechains = new Map<string, ConversationReader>();
  readonly #sideReaders: ConversationReader[] = [];

  constructor(sink: ForeignSink, path: string | null) {
    this.#sink = sink;
    this.#path = path;
  }

  line(line: ForeignLine): void {
    if (!isObjectLine(line)) {
      this.#sink.report.lose(line.number, "it is a list");
      return;
    }
    if (!KNOWN_LINES.has(line.value.type)) this.#sink.report.countUnknown(line.value.type);
    if (this.#main === null) {
      this.#early.push(line);
      if (typeof line.value.uuid === "string" && typeof line.value.sessionId === "string") this.#begin(line.value);
      return;
    }
    this.#take(line, this.#main);
  }

  flush(): void {
    for (const reader of this.#readers()) reader.flush();
  }

  get reopened(): boolean {
    return this.#readers().some((reader) => reader.reopened);
  }

  end(): void {
    if (this.#main === null && this.#early.length > 0) this.#begin({});
    for (const reader of this.#readers()) reader.end();
  }

  #readers(): readonly ConversationReader[] {
    return this.#main === null ? this.#sideReaders : [this.#main.reader, ...this.#sideReaders];
  }

  #begin(value: JsonObject): void {
    const early = this.#early;
    this.#early = [];
    const origin = this.#path === null ? null : originOf(this.#path);
    const sessionId = origin?.sessionId ?? textIn(value.sessionId) ?? sessionIdOf(early);
    if (sessionId === undefined) {
      for (const { number } of early) this.#sink.report.lose(number, "it belongs to no session");
      return;
    }
    const agentId = origin?.agentId ?? (value.isSidechain === true ? textIn(value.agentId) : undefined);
    const owner = origin?.agentId === undefined ? sessionId : (textIn(value.sessionId) ?? sessionId);
    const foreignId = agentId === undefined ? sessionId : `${owner}/agent-${agentId}`;
    const header = headerOf(value, early);
    const parent = agentId === undefined ? {} : { parentForeignId: owner };
    const log = this.#sink.begin({ foreignId, ...parent, ...header });
    const context = { sessionId: owner, common: header.rest.common as JsonObject };
    this.#main = {
      reader: new ConversationReader(log, this.#sink.report, context),
      foreignId,
      sidechain: agentId !== undefined,
    };
    for (const line of early) if (isObjectLine(line)) this.#take(line, this.#main);
  }

  #take(line: ObjectLine, main: MainConversation): void {
    const { isSidechain, uuid } = line.value;
    if (isSidechain !== true || main.sidechain || typeof uuid !== "string") main.reader.take(line);
    else this.#sidechainOf(line.value, uuid, main.foreignId).take(line);
  }

  /** The reader of a sub-agent's line in the main file. A line whose parent belongs to no sub-agent begins a new one. */
  #sidechainOf(value: JsonObject, uuid: string, main: string): ConversationReader {
    const known = this.#sidechains.get(textIn(value.parentUuid) ?? "") ?? this.#sidechains.get(uuid);
    const reader = known ?? this.#beginSidechain(value, uuid, main);
    this.#sidechains.set(uuid, reader);
    return reader;
  }

  #beginSidechain(value: JsonObject, uuid: string, main: string): ConversationReader {
    const header = headerOf(value, []);
    const log = this.#sink.begin({ foreignId: `${main}/side-${uuid}`, parentForeignId: main, ...header });
    const common = header.rest.common as JsonObject;
    const reader = new ConversationReader(log, this.#sink.report, { sessionId: main, common });
    this.#sideReaders.push(reader);
    return reader;
  }
}

function isObjectLine(line: ForeignLine): line is ObjectLine {
  return isFields(line.value);
}

function headerOf(value: JsonObject, early: readonly ForeignLine[]) {
  const shared = COMMON_FIELDS.flatMap((field) => (typeof value[field] === "string" ? [[field, value[field]]] : []));
  const times = [value, ...early.map((line) => line.value)].map((each) =>
    isFields(each) ? textIn(each.timestamp) : undefined,
  );
  return {
    createdAt: times.find((time) => time !== undefined) ?? null,
    cwd: textIn(value.cwd) ?? null,
    version: textIn(value.version) ?? null,
    rest: { common: Object.fromEntries(shared) as JsonObject },
  };
}

function sessionIdOf(lines: readonly ForeignLine[]): string | undefined {
  for (const { value } of lines) if (isFields(value) && typeof value.sessionId === "string") return value.sessionId;
  return undefined;
}

/** The session that a path names: `<session>.jsonl`, or `<session>/<folder>/agent-<id>.jsonl` for a sub-agent. */
function originOf(path: string): { readonly sessionId: string; readonly agentId?: string } | null {
  const name = basename(path, ".jsonl");
  if (!name.startsWith("agent-")) return isUuid(name) ? { sessionId: name } : null;
  return { sessionId: basename(dirname(dirname(path))), agentId: name.slice("agent-".length) };
}

/** The types of lines that Claude Code is known to write. */
const KNOWN_LINES: ReadonlySet<unknown> = new Set([
  "agent-color",
  "agent-name",
  "agent-setting",
  "ai-title",
  "api-request",
  "api-request-blob",
  "api-request-shape",
  "assistant",
  "atis-latch",
  "attachment",
  "attribution-snapshot",
  "bridge-session",
  "content-replacement",
  "cost-state",
  "custom-title",
  "file-history-snapshot",
  "fork-context-ref",
  "isolation-latch",
  "last-prompt",
  "marble-origami-commit",
  "marble-origami-reset",
  "marble-origami-snapshot",
  "mode",
  "parent-session",
  "permission-mode",
  "pr-link",
  "progress",
  "queue-operation",
  "relocated",
  "speculation-accept",
  "summary",
  "system",
  "tag",
  "task-summary",
  "tools-used",
  "user",
  "worktree-state",
]);
