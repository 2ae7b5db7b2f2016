import type { Entry, NodeBody } from "../../session/log/entry.ts";
import type { FormatName } from "./foreign-format.ts";

/** Maximum characters of a line in one entry: a character takes at most six bytes as JSON, an entry at most 8 MiB. */
const PART_CHARACTERS_MAX = 1_000_000;

/** The most characters of a part that is mostly base64, whose characters take one byte each. */
const WITH_DATA_CHARACTERS_MAX = 5_000_000;

/** The bodies of the `custom` entries that keep a line verbatim. A long line is split into several, in order. */
export function keptBodies(format: FormatName, text: string): NodeBody[] {
  const parts: string[] = [];
  for (let from = 0; from < text.length || from === 0; ) {
    let to = Math.min(from + PART_CHARACTERS_MAX, text.length);
    // A surrogate pair is not split: a lone surrogate cannot be stored.
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to--;
    // Data stays whole, so that the same picture in a message and in this line is stored once.
    const end = endOfBase64(text, to);
    if (end - from <= WITH_DATA_CHARACTERS_MAX) to = end;
    parts.push(text.slice(from, to));
    if (to === text.length) break;
    from = to;
  }
  const customType = `foreign.${format}`;
  if (parts.length === 1) return [{ type: "custom", customType, data: { line: text } }];
  return parts.map((line, index) => ({
    type: "custom",
    customType,
    data: { line, part: index + 1, of: parts.length },
  }));
}

/** Rejoins lines that `keptBodies` split. Create one for each export. */
export class KeptLines {
  readonly #customType: string;
  #parts: string[] = [];

  constructor(format: FormatName) {
    this.#customType = `foreign.${format}`;
  }

  /** The line that this entry completes; null while parts are missing; undefined if it keeps no line of this format. */
  take(entry: Entry): string | null | undefined {
    if (entry.type !== "custom" || entry.customType !== this.#customType) return undefined;
    const { line, part, of } = (entry.data ?? {}) as { line?: unknown; part?: unknown; of?: unknown };
    if (typeof line !== "string") return undefined;
    if (part === undefined) return isOneLine(line) ? line : undefined;
    if (part !== this.#parts.length + 1) this.#parts = [];
    this.#parts.push(line);
    if (part !== of) return null;
    const whole = this.#parts.join("");
    this.#parts = [];
    return isOneLine(whole) ? whole : null;
  }
}

/** Whether a text is one line of JSON. Needed because a log from elsewhere may hold any text in such an entry. */
export function isOneLine(text: string): boolean {
  if (text.includes("\n")) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** The end of the base64 that starts or continues at this position; the position itself if there is none. */
function endOfBase64(text: string, at: number): number {
  const run = /[A-Za-z0-9+/=]*/y;
  run.lastIndex = at;
  run.test(text);
  return run.lastIndex;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
