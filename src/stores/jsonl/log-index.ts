import { constants, fstatSync, ftruncateSync, mkdirSync, readFileSync, type Stats, writeSync } from "node:fs";
import { dirname } from "node:path";
import { crc32 } from "node:zlib";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { narrowPrivateFile, PRIVATE_DIRECTORY } from "../../internal/private-file.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { SettingsNode } from "../../session/log/settings.ts";
import type { LogPaths } from "./file-names.ts";
import { OpenFile, readChunk } from "./read-lines.ts";

/** Raise it with any change of the first line, or of the fold that made the head in it. */
const FORMAT = 7;
/** How many bytes a log grows by before its index is written anew. A shorter one has none, as to read it takes no longer. */
export const INDEXED_BYTES_MIN: number = 64 * 1024;
/** How many times as long as its index is the piece of log that comes before the next one: settings can make it long. */
const LOG_BYTES_PER_INDEX_BYTE = 2;
/** How much of a log before an offset is compared, to know it again. */
const TAIL_BYTES = 1024;

/** How a file looked. */
export interface FileStamp {
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
}

/** Where in a log a line begins: the position of its first entry, and its offset. */
export interface Anchor {
  readonly seq: number;
  readonly offset: number;
}

/** Which file a log is. */
export interface LogIdentity {
  readonly paths: LogPaths;
  readonly ino: number;
  /** Where the first line ends. */
  readonly headerEnd: number;
  /** A checksum of the first line. */
  readonly headerCheck: number;
}

/** What a log adds up to at the beginning of a line. */
export interface LogPoint {
  readonly end: Anchor;
  readonly head: SessionHead;
  /** The settings of the head, and those that they lead to. */
  readonly settings: readonly SettingsNode[];
}

/** The first line of an index. */
interface IndexLine {
  readonly format: number;
  readonly seq: number;
  readonly offset: number;
  /** A checksum of the log before the offset. */
  readonly tail: number;
  readonly log: readonly [headerCheck: number, ino: number, size: number, mtimeMs: number];
  readonly head: Omit<SessionHead, "header">;
  /** The settings that those of the head lead to. */
  readonly earlier: readonly SettingsNode[];
}

/** How far an index reaches: the offset in the log, and the length of the line that tells. */
export interface IndexReach {
  readonly offset: number;
  readonly length: number;
}

/** How far an index reaches that is not there. */
export const NO_INDEX: IndexReach = { offset: 0, length: 0 };

/** How a file looks. */
export function stampOf({ ino, size, mtimeMs }: Pick<Stats, "ino" | "size" | "mtimeMs">): FileStamp {
  return { ino, size, mtimeMs };
}

/** Whether a file looks as it did. */
export function sameStamp(stamp: FileStamp | null, { ino, size, mtimeMs }: FileStamp): boolean {
  return stamp !== null && stamp.size === size && stamp.mtimeMs === mtimeMs && stamp.ino === ino;
}

/** A checksum of the bytes before an offset of an open log, by which the log is known again. */
export function tailAt(fd: number, offset: number): number {
  const length = Math.min(offset, TAIL_BYTES);
  return crc32(readChunk(fd, offset - length, length));
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
  const found = linesOf(identity, fd);
  if (found === null) return null;
  const { line, rest, reach } = found;
  const stamp = fstatSync(fd);
  // A file that was left at this size and has another time, or is shorter, was changed in place, wherever.
  if (stamp.size < rest.size || (stamp.size === rest.size && !sameStamp(rest, stamp))) return null;
  const { seq, offset, head, earlier } = freezeDeep(line);
  const settings = head.path.settings === null ? [] : [head.path.settings, ...earlier];
  return { point: { end: { seq, offset }, head: Object.freeze({ ...head, header }), settings }, reach };
}

/**
 * Notes how a log looks that nobody writes to any more, and what it adds up to where enough came since that was last noted.
 * Call it under the log's lock. `reach` is null where others may have written to the index. Gives how far it reaches then.
 */
export function writeIndex(identity: LogIdentity, fd: number, point: LogPoint, reach: IndexReach | null): IndexReach {
  const known = reach ?? linesOf(identity, fd)?.reach ?? NO_INDEX;
  const due = point.end.offset - known.offset >= Math.max(INDEXED_BYTES_MIN, known.length * LOG_BYTES_PER_INDEX_BYTE);
  // Without a first line, nothing is taken from the index anyway.
  if (!due && known.length === 0) return known;
  const stamp = stampOf(fstatSync(fd));
  const text = withChecksum(due ? lineOf(identity, fd, point, stamp) : stamp);
  const at = due ? 0 : known.length;
  const { index } = identity.paths;
  mkdirSync(dirname(index), { ...PRIVATE_DIRECTORY, recursive: true });
  narrowPrivateFile(index);
  using file = new OpenFile(index, constants.O_RDWR | constants.O_CREAT);
  ftruncateSync(file.fd, at);
  writeSync(file.fd, text, at);
  return due ? { offset: point.end.offset, length: Buffer.byteLength(text) } : known;
}

function lineOf(
  { headerCheck }: LogIdentity,
  fd: number,
  { end, head: { header: _, ...head }, settings }: LogPoint,
  log: FileStamp,
): IndexLine {
  return {
    format: FORMAT,
    ...end,
    tail: tailAt(fd, end.offset),
    log: [headerCheck, log.ino, log.size, log.mtimeMs],
    head,
    earlier: settings.slice(1),
  };
}

/** A line of an index: what the log adds up to, or how it looked when nobody wrote to it. */
export function withChecksum(value: object): string {
  const json = JSON.stringify(value);
  return `${crc32(json).toString(16).padStart(8, "0")} ${json}\n`;
}

/** The line of the index of an open log, and how the log looked when it was last left, which may stand in a second one. */
function linesOf(
  { paths, headerCheck, ino }: LogIdentity,
  fd: number,
): { readonly line: IndexLine; readonly rest: FileStamp; readonly reach: IndexReach } | null {
  let text: string;
  try {
    text = readFileSync(paths.index, "utf8");
  } catch {
    // One that cannot be read is as good as none: all is in the log.
    return null;
  }
  const [first = "", second = ""] = text.split("\n");
  const line = parseChecked(first) as IndexLine | null;
  if (line?.format !== FORMAT || line.log[0] !== headerCheck || line.log[1] !== ino) return null;
  if (tailAt(fd, line.offset) !== line.tail) return null;
  const [, , size, mtimeMs] = line.log;
  const rest = (parseChecked(second) as FileStamp | null) ?? { ino, size, mtimeMs };
  return { line, rest, reach: { offset: line.offset, length: Buffer.byteLength(first) + 1 } };
}

function parseChecked(text: string): unknown {
  const json = text.slice(9);
  if (text[8] !== " " || crc32(json) !== Number.parseInt(text.slice(0, 8), 16)) return null;
  return JSON.parse(json);
}
