import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import type { Lineage, LineageKind } from "../../../session/log/header.ts";
import { NO_USAGE } from "../../../session/usage.ts";
import type { FindRest, ForeignLine, ForeignLogSink, ForeignReader, ForeignSink } from "../foreign-format.ts";
import { timestampOf } from "../foreign-log.ts";
import { isFields, textIn } from "../foreign-values.ts";
import { diffJson } from "../json-patch.ts";
import { bodyOfRow, rowOfEntry, usageOfOpenRath } from "./openrath-row.ts";

/** The custom type of the entry that records the sandbox of OpenRath's tools. It is not used as a placement here. */
const PLACEMENT = "openrath.placement";

/** Record types and chunk kinds that OpenRath writes. */
const KNOWN_RECORDS: ReadonlySet<unknown> = new Set(["chunk", "header", "trailer"]);
const KNOWN_CHUNKS: ReadonlySet<unknown> = new Set(["assistant", "system", "tool_result", "user"]);

function unknownKindOf({ record_type: type, kind }: JsonObject): string | undefined {
  if (!KNOWN_RECORDS.has(type)) return textIn(type) ?? "";
  return type !== "chunk" || KNOWN_CHUNKS.has(kind) ? undefined : `chunk/${textIn(kind) ?? ""}`;
}

/** Reads a session of OpenRath: a header, rows, and a trailer if the session was closed cleanly. */
export class OpenRathReader implements ForeignReader {
  readonly #sink: ForeignSink;
  #log: ForeignLogSink | null = null;
  #header = "";

  constructor(sink: ForeignSink) {
    this.#sink = sink;
  }

  line(line: ForeignLine): void {
    const { value } = line;
    const kind = isFields(value) ? unknownKindOf(value) : undefined;
    if (kind !== undefined) this.#sink.report.countUnknown(kind);
    if (this.#log === null) this.#begin(line);
    else if (line.text === this.#header) this.#sink.report.doubled++;
    else if (!isFields(value)) this.#log.keep(line);
    else if (value.record_type === "chunk" && Number.isInteger(value.index)) this.#row(line, value, this.#log);
    else if (value.record_type === "trailer") this.#trailer(line, value, this.#log);
    else this.#log.keep(line);
  }

  end(): void {}

  #begin(line: ForeignLine): void {
    const { value } = line;
    const id = isFields(value) && value.record_type === "header" ? textIn(value.id) : undefined;
    if (!isFields(value) || id === undefined) {
      this.#sink.report.lose(line.number, "it precedes the header of the session");
      return;
    }
    this.#sink.report.mapped++;
    this.#header = line.text;
    const { sandbox_backend: backend, sandbox_spec: spec = null, sandbox_handle_id: handleId = null } = value;
    this.#log = this.#sink.begin({
      foreignId: id,
      lineage: lineageOf(value),
      createdAt: textIn(value.created_at) ?? null,
      cwd: isFields(spec) ? (textIn(spec.working_dir) ?? null) : null,
      version: typeof value.schema_version === "number" ? String(value.schema_version) : null,
      rest: value,
    });
    if (typeof backend !== "string") return;
    const body = { type: "custom", customType: PLACEMENT, data: { backend, spec, handleId } } as const;
    this.#log.add({ id: "placement", body }, []);
  }

  #row(line: ForeignLine, value: JsonObject, log: ForeignLogSink): void {
    const body = bodyOfRow(value);
    const id = `row-${String(value.index)}`;
    if (body === null) {
      log.keep(line, { id });
      return;
    }
    const marks = isFields(value.skein) ? value.skein : {};
    const own = textIn(marks.id);
    const rest = own === undefined ? restIn(value) : undefined;
    log.add({ id: own ?? id, time: marks.timestamp, body, rest }, [line]);
  }

  #trailer(line: ForeignLine, value: JsonObject, log: ForeignLogSink): void {
    const closedAt = timestampOf(value.closed_at);
    const count = value.final_chunk_count;
    if (closedAt === null || typeof count !== "number") {
      log.keep(line);
      return;
    }
    const usage = usageOfOpenRath(value.cumulative_usage) ?? NO_USAGE;
    const body = { type: "trailer", closedAt, entryCount: count, usage } as const;
    log.add({ id: `trailer-${closedAt}`, time: closedAt, body, rest: () => value }, [line]);
  }
}

/** The patch that restores the row. An empty patch is stored as well: it marks the entry as written by OpenRath. */
function restIn(value: JsonObject): FindRest {
  const { index = 0 } = value;
  return (entry, report) => {
    const { kind = "", payload = {} } = rowOfEntry(entry, report) ?? {};
    return (diffJson(value, { record_type: "chunk", index, kind, payload }) ?? {}) as unknown as JsonValue;
  };
}

const KINDS: readonly string[] = [
  "leaf_user",
  "leaf_system",
  "op_session_loop",
  "op_fork",
  "op_detach",
  "op_merge",
  "op_session_compress",
] satisfies readonly LineageKind[];

function lineageOf(value: JsonObject): Lineage {
  const { parent_session_ids: parents, lineage_kind: kind, lineage_extras: extras } = value;
  return {
    parents: listOf(parents).filter((parent) => typeof parent === "string"),
    operator: textIn(value.lineage_operator) ?? "implicit",
    kind: KINDS.includes(textIn(kind) ?? "") ? (kind as LineageKind) : "unknown",
    extras: listOf(extras).filter(isExtra),
  };
}

function isExtra(pair: JsonValue): pair is [string, JsonValue] {
  return Array.isArray(pair) && pair.length === 2 && typeof pair[0] === "string";
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? (value as readonly JsonValue[]) : [];
}
