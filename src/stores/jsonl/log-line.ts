import { isUtf8 } from "node:buffer";
import type { Entry } from "../../session/log/entry.ts";
import { bodyProblem, stampProblem } from "../../session/log/entry-check.ts";
import { show } from "../../session/errors.ts";

/** The maximum size of one line, and so of one append. */
export const LINE_BYTES_MAX: number = 256 * 1024 * 1024;

/** The byte that ends a line. */
export const NEWLINE = 10;

/** A line of a file without its newline. */
export interface RawLine {
  readonly offset: number;
  /** Its size in bytes, including the newline. */
  readonly length: number;
  /** The line, or only its beginning if it is longer than the maximum. */
  readonly bytes: Buffer;
}

/** One entry as JSON, without its position: that follows from the place of its line in the file. */
export function formatEntry(entry: Entry): string {
  const { seq: _, ...fields } = entry;
  return JSON.stringify(fields);
}

/** Formats the entries of one append as a line. */
export function formatLine(entries: readonly Entry[]): string {
  if (entries.length === 1) return `${formatEntry(entries[0] as Entry)}\n`;
  return `[${entries.map(formatEntry).join(",")}]\n`;
}

/** Parses the entries of a line, the first of which is at position `seq`. Returns a text if the line is invalid. */
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

/** Decodes complete lines into one text for each; null if the bytes are not UTF-8. */
export function textsIn(bytes: Buffer): string[] | null {
  return isUtf8(bytes) ? bytes.toString("utf8", 0, bytes.length - 1).split("\n") : null;
}

/**
 * Parses a line that was checked and folded before, without setting positions. Returns null if it is not JSON of entries.
 * The entries are not checked again: in a process that has just started, that takes longer than the rest of the read.
 */
export function knownEntries(text: string): Entry[] | null {
  try {
    const entries = entriesIn(JSON.parse(text));
    return entries.every((entry) => typeof entry === "object" && entry !== null) ? entries : null;
  } catch {
    return null;
  }
}

/** The entries of a line's JSON value: one entry, or the list of one append. */
function entriesIn(json: unknown): Entry[] {
  return (Array.isArray(json) ? json : [json]) as Entry[];
}

/** Parses a line as JSON. Returns a text if that fails. */
export function parseJson({ bytes, length }: RawLine): { readonly json: unknown } | string {
  if (length > LINE_BYTES_MAX) return `it is longer than ${LINE_BYTES_MAX} bytes`;
  if (!isUtf8(bytes)) return "it is not UTF-8";
  try {
    return { json: JSON.parse(bytes.toString("utf8")) };
  } catch {
    return "it is not JSON";
  }
}

/** The error of `JSON.parse` for a text, used as the cause of a damage error; undefined if the text is valid JSON. */
export function jsonErrorOf(text: Buffer | string): unknown {
  try {
    JSON.parse(text.toString("utf8"));
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Checks an entry as it is in a file. Returns what is wrong with it, or null. */
export function entryProblem(item: unknown): string | null {
  if (typeof item !== "object" || item === null || Array.isArray(item)) return "it is not an entry";
  const entry = item as { readonly [key: string]: unknown };
  if (entry.type === "lost") return `its type is ${show("lost")}, which is never stored`;
  return stampProblem(entry) ?? bodyProblem(entry);
}
