import type { Entry, NodeBody } from "../../session/log/entry.ts";
import type { FormatName } from "./foreign-format.ts";

/** The most characters of a line in one entry: none takes more than six bytes as JSON, and an entry has 8 MiB. */
const PART_CHARACTERS_MAX = 1_000_000;

/** The bodies of the `custom` entries that keep a line verbatim. A long line takes several, in order. */
export function keptBodies(format: FormatName, text: string): NodeBody[] {
  const parts: string[] = [];
  for (let from = 0; from < text.length || from === 0; ) {
    let to = Math.min(from + PART_CHARACTERS_MAX, text.length);
    // A pair of surrogates stays together, as half of one cannot be stored.
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to--;
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

/** Puts lines together again that `keptBodies` took apart. One for each export. */
export class KeptLines {
  readonly #customType: string;
  #parts: string[] = [];

  constructor(format: FormatName) {
    this.#customType = `foreign.${format}`;
  }

  /** The line that ends with this entry; null while parts are missing; undefined for an entry that keeps no line of this format. */
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

/** Whether a text is one line of JSON. A log that was not imported by us may have kept anything. */
export function isOneLine(text: string): boolean {
  if (text.includes("\n")) return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}
