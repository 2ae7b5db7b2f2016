import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  type Stats,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { narrowPrivateFile, PRIVATE_DIRECTORY, PRIVATE_FILE_MODE } from "../../internal/private-file.ts";
import { EMPTY_PATH, type SessionHead } from "../../session/fold.ts";
import type { SessionHeader } from "../../session/header.ts";
import type { SettingsNode } from "../../session/settings.ts";
import { decodeHead, decodePath, headState, settingsState, type EntryState, settingsIn } from "../rows/entry-state.ts";
import { NEWLINE } from "./log-line.ts";
import type { Places } from "./places.ts";
import { readChunk } from "./read-lines.ts";

/** Raise it with any change of a line, or of the fold that made the head in it. */
const FORMAT = 4;
/** How many bytes of log lie between two lines of an index, unless a line itself is long. */
const INTERVAL_BYTES = 128 * 1024;
/** Up to which size a log has no index, as to read it takes no longer. */
export const INDEXED_BYTES_MIN: number = INTERVAL_BYTES / 2;
/** How many times as long as a line is the piece of log before the next one: settings can make a line long. */
const LOG_BYTES_PER_LINE_BYTE = 4;
/** How many lines at the end of an index may say nothing, as a crash leaves at most one, before it is given up. */
const BROKEN_LINES_MAX = 4;

/** How much of the end of a line is kept, at most, to know it again. */
export const TAIL_BYTES = 1024;

/** How a file looked. */
export interface FileStamp {
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
}

/** A place in a log at which a line begins: the position of its first entry, and its offset. */
export interface Anchor {
  readonly seq: number;
  readonly offset: number;
}

/** Which file a log is. */
export interface LogIdentity {
  readonly places: Places;
  readonly ino: number;
  /** Where the first line ends. */
  readonly headerEnd: number;
  /** A checksum of the first line. */
  readonly headerCheck: number;
}

/** What a log adds up to at a place. */
export interface LogPoint {
  readonly end: Anchor;
  /** How many lines come before, the header's included. */
  readonly lines: number;
  /** The last bytes of the line before. */
  readonly tail: Buffer;
  readonly head: SessionHead;
  /** The settings that those of the head lead to. */
  readonly settings: readonly SettingsNode[];
}

/** A line of an index as it is written. */
interface IndexLine {
  readonly format: number;
  readonly seq: number;
  readonly offset: number;
  readonly lines: number;
  readonly tail: readonly [check: number, length: number];
  readonly log: readonly [headerCheck: number, ino: number, size: number, mtimeMs: number];
  readonly leaf: string | null;
  readonly head: EntryState;
  readonly settings: readonly (readonly [seq: number, node: NonNullable<EntryState["settings"]>])[];
}

/** How far an index reaches: what decides when the next line is due. */
export interface IndexReach {
  /** The offset in the log. */
  readonly offset: number;
  /** The offset in the index after the last line, and that line's length. */
  readonly end: number;
  readonly length: number;
}

/** How far an index reaches that is not there. */
export const NO_INDEX: IndexReach = { offset: 0, end: 0, length: 0 };

/** A checksum of some bytes. */
export function checksum(bytes: Uint8Array | string): number {
  return crc32(bytes);
}

/** How a file looks. */
export function stampOf({ ino, size, mtimeMs }: Pick<Stats, "ino" | "size" | "mtimeMs">): FileStamp {
  return { ino, size, mtimeMs };
}

/** Whether a file looks as it did. */
export function sameStamp(stamp: FileStamp | null, { ino, size, mtimeMs }: FileStamp): boolean {
  return stamp !== null && stamp.size === size && stamp.mtimeMs === mtimeMs && stamp.ino === ino;
}

/** Whether an index that reaches so far, as far as that is known, is to get a line at an offset; earlier when the log is left. */
export function isLineDue(
  reach: IndexReach | null,
  offset: number,
  { resting }: { readonly resting: boolean },
): boolean {
  if (reach === null) return offset > INDEXED_BYTES_MIN;
  const interval = Math.max(INTERVAL_BYTES, reach.length * LOG_BYTES_PER_LINE_BYTE);
  return offset - reach.offset >= (resting ? interval / 2 : interval);
}

/**
 * Where the index lets a fold of an open log begin, and how far it reaches; null when it is missing, or is not of this file
 * as it is now.
 */
export function readIndex(
  identity: LogIdentity,
  header: SessionHeader,
  fd: number,
): { readonly point: LogPoint; readonly reach: IndexReach } | null {
  const last = readLast(identity, fd);
  if (last === null) return null;
  const { line, rest, tail, reach } = last;
  const stamp = fstatSync(fd);
  // A file that was left at this size and has another time, or is shorter, was changed in place, wherever.
  if (stamp.size < rest.size || (stamp.size === rest.size && !sameStamp(rest, stamp))) return null;
  const settings = line.settings.map(([seq, node]) => settingsIn({ at: "", settings: node }, seq));
  const settingsAt = (seq: number): SettingsNode => settings.find((node) => node.seq === seq) as SettingsNode;
  const path = decodePath(line.head, -1, settingsAt) ?? EMPTY_PATH;
  const head = decodeHead(line.seq, line.head, { header, leafId: line.leaf, path, facts: line.head.facts });
  return { point: { end: { seq: line.seq, offset: line.offset }, lines: line.lines, tail, head, settings }, reach };
}

/** The places that an index knows in an open log. */
export function readAnchors(identity: LogIdentity, fd: number): Anchor[] {
  return readLinesOf(identity.places.index).flatMap(({ text }) => {
    const line = parseLine(text);
    return line === null || tailOf(line, identity, fd) === null ? [] : [{ seq: line.seq, offset: line.offset }];
  });
}

/**
 * Brings an index up to date, where that is due, and notes how the log looks when nobody writes to it any more. Call it
 * under the log's lock. `reach` is null where others may have written to the index. Gives how far it reaches then.
 */
export function writeIndex(
  identity: LogIdentity,
  fd: number,
  point: LogPoint,
  { reach, resting }: { readonly reach: IndexReach | null; readonly resting: boolean },
): IndexReach {
  const known = reach ?? readLast(identity, fd)?.reach ?? NO_INDEX;
  const due = isLineDue(known, point.end.offset, { resting });
  // Without a line, nothing is taken from the index anyway.
  if (!due && (!resting || known.end === 0)) return known;
  const stamp = fstatSync(fd);
  const text = Buffer.from(due ? formatLine(identity, point, stamp) : formatRest(stamp));
  const index = openIndex(identity.places.index);
  try {
    ftruncateSync(index, known.end);
    writeSync(index, text, 0, text.length, known.end);
  } finally {
    closeSync(index);
  }
  return due ? { offset: point.end.offset, end: known.end + text.length, length: text.length } : known;
}

function openIndex(path: string): number {
  mkdirSync(dirname(path), { ...PRIVATE_DIRECTORY, recursive: true });
  narrowPrivateFile(path);
  return openSync(path, constants.O_RDWR | constants.O_CREAT, PRIVATE_FILE_MODE);
}

function formatLine({ headerCheck }: LogIdentity, point: LogPoint, { ino, size, mtimeMs }: FileStamp): string {
  const { end, lines, tail, head } = point;
  const where = { format: FORMAT, seq: end.seq, offset: end.offset, lines };
  const checks = { tail: [checksum(tail), tail.length], log: [headerCheck, ino, size, mtimeMs] };
  const settings = point.settings.map((node) => [node.seq, settingsState(node)]);
  return withChecksum(JSON.stringify({ ...where, ...checks, leaf: head.leafId, head: headState(head), settings }));
}

/** The line that says how the log looked when nobody wrote to it. It stands after the last other line, until the next one. */
export function formatRest({ ino, size, mtimeMs }: FileStamp): string {
  return withChecksum(JSON.stringify({ rest: [ino, size, mtimeMs] }));
}

function withChecksum(json: string): string {
  return `${checksum(json).toString(16).padStart(8, "0")} ${json}\n`;
}

/** The lines of an index, each with the offset after it. One that cannot be read is as good as none: all is in the log. */
function readLinesOf(path: string): { readonly text: string; readonly end: number; readonly length: number }[] {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch {
    return [];
  }
  const lines: ReturnType<typeof readLinesOf> = [];
  let start = 0;
  for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
    lines.push({ text: bytes.toString("utf8", start, end), end: end + 1, length: end + 1 - start });
    start = end + 1;
  }
  return lines;
}

/** The last line of the index of an open log, and how the log looked when it was last left in good order. */
function readLast(identity: LogIdentity, fd: number) {
  let rest: FileStamp | null = null;
  for (const { text, ...place } of readLinesOf(identity.places.index).slice(-BROKEN_LINES_MAX).reverse()) {
    const line = parseLine(text);
    if (line === null) {
      rest ??= parseRest(text);
      continue;
    }
    const tail = tailOf(line, identity, fd);
    if (tail === null) return null;
    const [, ino, size, mtimeMs] = line.log;
    const reach: IndexReach = { offset: line.offset, ...place };
    return { line, tail, reach, rest: rest ?? { ino, size, mtimeMs } };
  }
  return null;
}

function parseLine(text: string): IndexLine | null {
  const line = parseChecked(text) as IndexLine | null;
  return line?.format === FORMAT ? line : null;
}

function parseRest(text: string): FileStamp | null {
  const { rest } = (parseChecked(text) ?? {}) as { rest?: readonly [number, number, number] };
  return rest === undefined ? null : { ino: rest[0], size: rest[1], mtimeMs: rest[2] };
}

function parseChecked(text: string): unknown {
  const json = text.slice(9);
  if (text[8] !== " " || checksum(json) !== Number.parseInt(text.slice(0, 8), 16)) return null;
  return JSON.parse(json);
}

/** The bytes before a line's place, if they are those that it was written for. */
function tailOf(line: IndexLine, { headerCheck, ino }: LogIdentity, fd: number): Buffer | null {
  const [check, length] = line.tail;
  if (line.log[0] !== headerCheck || line.log[1] !== ino) return null;
  const tail = readTail(fd, line.offset, length);
  return tail !== null && checksum(tail) === check ? tail : null;
}

/** The last bytes of the line that ends at an offset; null when none ends there. */
export function readTail(fd: number, offset: number, length: number): Buffer | null {
  const bytes = readChunk(fd, offset - length - 1, length + 1);
  return bytes.length === length + 1 && bytes[length] === NEWLINE ? bytes.subarray(0, length) : null;
}
