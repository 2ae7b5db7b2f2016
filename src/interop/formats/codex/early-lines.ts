import { createHash } from "node:crypto";
import type { JsonObject } from "../../../internal/json.ts";
import type { ForeignLine } from "../foreign-format.ts";
import { timestampOf } from "../foreign-log.ts";
import { isFields, textIn } from "../foreign-values.ts";

/**
 * The lines of early files of Codex as it writes them since. The first line was the header alone, and the others were items
 * alone: nothing said what kind of line it is, nor its time.
 */
export class EarlyLines {
  #startedAt: string | null = null;
  /** How often each line has come, by its digest: two that say the same are told apart by their times elsewhere. */
  readonly #times = new Map<string, number>();

  /** The line in its present form; one that has it already, or has none, as it is. */
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
