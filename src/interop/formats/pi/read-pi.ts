import { basename } from "node:path";
import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import type { FindRest, ForeignLine, ForeignLogSink, ForeignReader, ForeignSink } from "../foreign-format.ts";
import { digest } from "../foreign-id.ts";
import { timestampOf } from "../foreign-log.ts";
import { isFields, textIn } from "../foreign-values.ts";
import { diffJson } from "../json-patch.ts";
import { bodyOfPi, piOfEntry } from "./pi-entry.ts";

/** The custom type of the entry that records the leaf, if the leaf is not the last entry. */
export const LEAF_MARK = "skein.leaf";

/** Reads a session of pi: versions 1 to 3 of its coding agent, and version 4 of its newer core. */
export class PiReader implements ForeignReader {
  readonly #sink: ForeignSink;
  #log: ForeignLogSink | null = null;
  #version = 3;
  /** The ids assigned to entries of version 1, by their position in the file. */
  readonly #ids: (string | null)[] = [];
  /** The ids of messages in version 4: its compactions record only how many messages they keep. */
  readonly #messages: string[] = [];

  constructor(sink: ForeignSink) {
    this.#sink = sink;
  }

  line(line: ForeignLine): void {
    if (this.#log === null) this.#begin(line);
    else if (isFields(line.value) && isPiHeader(line.value)) this.#sink.report.doubled++;
    else if (this.#version === 4) this.#transaction(line, this.#log);
    else if (isFields(line.value)) this.#entry(line, line.value, this.#log);
    else this.#log.keep(line);
  }

  end(): void {}

  #begin(line: ForeignLine): void {
    const { value } = line;
    const id = isFields(value) ? textIn(value.id) : undefined;
    if (!isFields(value) || id === undefined || !isPiHeader(value)) {
      this.#sink.report.lose(line.number, "it precedes the header of the session");
      return;
    }
    this.#sink.report.mapped++;
    this.#ids.push(null);
    this.#version = value.kind === "header" ? 4 : typeof value.version === "number" ? value.version : 1;
    const parent = textIn(value.parentSessionId) ?? parentOf(textIn(value.parentSession));
    const { timestamp, createdAt } = value;
    const time = timestamp ?? createdAt;
    this.#log = this.#sink.begin({
      foreignId: id,
      ...(parent === undefined ? {} : { parentForeignId: parent }),
      createdAt: timestampOf(time),
      cwd: textIn(value.cwd) ?? null,
      version: String(this.#version),
      rest: value,
    });
  }

  #entry(line: ForeignLine, given: JsonObject, log: ForeignLogSink): void {
    const kind = unknownKindOf(given);
    if (kind !== undefined) this.#sink.report.countUnknown(kind);
    const value = this.#version < 3 ? this.#migrated(line, given) : given;
    const [id, parentId] = [textIn(value.id), value.parentId === null ? null : textIn(value.parentId)];
    if (id === undefined) {
      log.keep(line);
      return;
    }
    const time = value.timestamp;
    if (value.type === "custom" && value.customType === LEAF_MARK) {
      log.move(id, parentId ?? null, line);
      return;
    }
    const body = value.type === "label" ? labelOf(value, log) : bodyOfPi(value, id);
    if (body === null) {
      log.keep(line, { id, parentId, time });
      return;
    }
    log.add({ id, parentId, time, body, rest: restIn(value) }, [line]);
    // These are nodes in pi and facts here: their children are attached to their parent.
    if (body.type === "label" || body.type === "session_info") log.alias(id, parentId ?? log.leafId);
  }

  /** Converts an entry of version 1 (no ids) or 2 (another name for a role) to version 3. */
  #migrated(line: ForeignLine, value: JsonObject): JsonObject {
    if (this.#version === 1) {
      const id = `line.${digest(line.text).slice(0, 24)}`;
      const parentId = this.#ids.at(-1) ?? null;
      if (parentId !== id) this.#ids.push(id);
      const { firstKeptEntryIndex: kept, ...rest } = value;
      const named = typeof kept === "number" ? { firstKeptEntryId: this.#ids[kept] ?? id } : {};
      return renamed({ ...rest, ...named, id, parentId });
    }
    return renamed(value);
  }

  /** Version 4: a line is one write, or a list of writes of one transaction. */
  #transaction(line: ForeignLine, log: ForeignLogSink): void {
    const writes = (Array.isArray(line.value) ? line.value : [line.value]) as readonly JsonValue[];
    for (const write of writes) {
      const one = writes.length === 1 ? line : { ...line, value: write, text: JSON.stringify(write) };
      if (isFields(write) && !KNOWN_WRITES.has(write.kind)) this.#sink.report.countUnknown(write.kind);
      if (!isFields(write)) log.keep(one);
      else if (write.kind === "entry") this.#entry(one, this.#withoutStamps(write), log);
      else if (!this.#value(one, write, log)) log.keep(one);
    }
  }

  /** Converts an entry of version 4 to version 3. */
  #withoutStamps({ kind: _kind, seq: _seq, ...entry }: JsonObject): JsonObject {
    const timestamp = timestampOf(entry.timestamp) ?? "";
    if (entry.type === "message" && typeof entry.id === "string") this.#messages.push(entry.id);
    if (entry.type !== "compaction" || !Array.isArray(entry.retainedTail)) return { ...entry, timestamp };
    const kept = this.#messages.at(-entry.retainedTail.length);
    const named = entry.retainedTail.length === 0 || kept === undefined ? {} : { firstKeptEntryId: kept };
    return { ...entry, ...named, timestamp };
  }

  /** Adds a key-value write of version 4. Returns false if it has no counterpart. */
  #value(line: ForeignLine, write: JsonObject, log: ForeignLogSink): boolean {
    const { namespace, key, value } = write;
    if (write.kind !== "value" || typeof key !== "string") return false;
    const id = `write-${typeof write.seq === "number" ? write.seq : digest(line.text).slice(0, 24)}`;
    if (namespace === "pi.branch.tip" && key === "main") {
      const known = value === null || (typeof value === "string" && log.has(value));
      if (known) log.move(id, value, line);
      return known;
    }
    if (namespace === "pi.session.name" && typeof value === "string") {
      log.add({ id, body: { type: "session_info", name: value } }, [line]);
      return true;
    }
    if (namespace !== "pi.entry.label" || !log.has(key)) return false;
    log.add({ id, body: { type: "label", targetId: key, label: textIn(value) ?? null } }, [line]);
    return true;
  }
}

/** Entry types, message roles and, of version 4, kinds of writes that pi writes. */
const KNOWN_ENTRIES: ReadonlySet<unknown> = new Set([
  "branch_summary",
  "compaction",
  "custom",
  "custom_message",
  "label",
  "message",
  "model_change",
  "session_info",
  "thinking_level_change",
]);
const KNOWN_ROLES: ReadonlySet<unknown> = new Set([
  "assistant",
  "bashExecution",
  "branchSummary",
  "compactionSummary",
  "custom",
  "hookMessage",
  "system",
  "toolResult",
  "user",
]);
const KNOWN_WRITES: ReadonlySet<unknown> = new Set(["entry", "list", "value"]);

function unknownKindOf({ type, message }: JsonObject): string | undefined {
  if (!KNOWN_ENTRIES.has(type)) return textIn(type) ?? "";
  const role = isFields(message) ? message.role : undefined;
  return type !== "message" || KNOWN_ROLES.has(role) ? undefined : `message/${textIn(role) ?? ""}`;
}

/** Whether the first line of a file is a header of pi, and not a header of Skein's own format. */
export function isPiHeader(value: JsonObject): boolean {
  if (value.kind === "header" && value.v === 4) return typeof value.id === "string";
  return value.type === "session" && typeof value.id === "string" && value.lineage === undefined;
}

function labelOf(
  value: JsonObject,
  log: ForeignLogSink,
): { type: "label"; targetId: string; label: string | null } | null {
  const targetId = textIn(value.targetId);
  if (targetId === undefined || !log.has(targetId)) return null;
  return { type: "label", targetId, label: textIn(value.label) ?? null };
}

/** The patch that restores the pi entry, without its parent, which is computed when it is written. */
function restIn(value: JsonObject): FindRest {
  const { parentId = null } = value;
  return (entry, report) => {
    const { id, timestamp } = entry;
    const translated = { id, parentId, timestamp, ...piOfEntry(entry, report) };
    return diffJson(value, translated) as unknown as JsonValue | undefined;
  };
}

function renamed(value: JsonObject): JsonObject {
  if (value.type !== "message" || !isFields(value.message) || value.message.role !== "hookMessage") return value;
  return { ...value, message: { ...value.message, role: "custom" } };
}

/** The session id in a file name `<time>_<id>.jsonl`. */
function parentOf(path: string | undefined): string | undefined {
  return path === undefined ? undefined : /_([^_/\\]+)\.jsonl$/.exec(basename(path.replaceAll("\\", "/")))?.[1];
}
