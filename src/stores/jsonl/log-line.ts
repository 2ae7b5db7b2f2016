import { isUtf8 } from "node:buffer";
import type { Entry } from "../../session/log/entry.ts";
import { bodyProblem, stampProblem } from "../../session/log/entry-check.ts";
import { show } from "../../session/errors.ts";

/** The most bytes of one line, which is what one append may take as a whole. */
export const LINE_BYTES_MAX: number = 256 * 1024 * 1024;

/** The byte that ends a line. */
export const NEWLINE = 10;

/** A line of a file, without its end. */
export interface RawLine {
  readonly offset: number;
  /** How many bytes it takes, its end included. */
  readonly length: number;
  /** The line, or its beginning when it is longer than any line may be. */
  readonly bytes: Buffer;
}

/** The text of one entry. Its position is not part of it: that is where the line stands. */
export function formatEntry(entry: Entry): string {
  const { seq: _, ...fields } = entry;
  return JSON.stringify(fields);
}

/** The line of entries that land together. */
export function formatLine(entries: readonly Entry[]): string {
  if (entries.length === 1) return `${formatEntry(entries[0] as Entry)}\n`;
  return `[${entries.map(formatEntry).join(",")}]\n`;
}

/** The entries of a line, the first of them at position `seq`; or what is wrong with the line. */
export function parseLine(line: RawLine, seq: number): Entry[] | string {
  const value = parseJson(line);
  if (typeof value === "string") return value;
  const entries = entriesIn(value.json);
  if (entries.length === 0) return "it is an empty list";
  for (const [index, entry] of entries.entries()) {
    const problem = entryProblem(entry);
    if (problem !== null) return entries.length === 1 ? problem : `of entry ${index} of its list, ${problem}`;
    (entry as { seq: number }).seq = seq + index;
  }
  return entries;
}

/** The text of each line in some bytes that end with one; null where that is not UTF-8. */
export function textsIn(bytes: Buffer): string[] | null {
  return isUtf8(bytes) ? bytes.toString("utf8", 0, bytes.length - 1).split("\n") : null;
}

/**
 * The entries of a line that was folded before, without their positions; null where it is not what it was. They are not
 * checked again: in a process that has just started, that takes longer than all else about reading them.
 */
export function knownEntries(text: string): Entry[] | null {
  try {
    const entries = entriesIn(JSON.parse(text));
    return entries.every((entry) => typeof entry === "object" && entry !== null) ? entries : null;
  } catch {
    return null;
  }
}

/** One entry, or those that landed together. */
function entriesIn(json: unknown): Entry[] {
  return (Array.isArray(json) ? json : [json]) as Entry[];
}

/** The JSON value of a line, or what is wrong with it. */
export function parseJson({ bytes, length }: RawLine): { readonly json: unknown } | string {
  if (length > LINE_BYTES_MAX) return `it is longer than ${LINE_BYTES_MAX} bytes`;
  if (!isUtf8(bytes)) return "it is not UTF-8";
  try {
    return { json: JSON.parse(bytes.toString("utf8")) };
  } catch {
    return "it is not JSON";
  }
}

/** The error of a text that is not JSON, as the cause of a damage that was found; undefined for one that is. */
export function jsonErrorOf(text: Buffer | string): unknown {
  try {
    JSON.parse(text.toString("utf8"));
    return undefined;
  } catch (error) {
    return error;
  }
}

/** What is wrong with one entry as it stands in a file, or null. */
export function entryProblem(item: unknown): string | null {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return "it is not an entry";
  const entry = item as { readonly [key: string]: unknown };
  if (entry.type === "lost") return `its type is ${show("lost")}, which is never stored`;
  return stampProblem(entry) ?? bodyProblem(entry);
}
