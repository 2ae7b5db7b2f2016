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

/** The format of the index. Raise it with any change of the first line, or of the fold that computes its head. */
const FORMAT = 7;
/** How many bytes a log grows by before its index is rewritten. Shorter logs have no index: reading them takes no longer. */
export const INDEXED_BYTES_MIN: number = 64 * 1024;
/** A log grows by at least this many times the size of its index before the index is rewritten: settings can make it large. */
const LOG_BYTES_PER_INDEX_BYTE = 2;
/** How many bytes before an offset are covered by the checksum that identifies a log. */
const TAIL_BYTES = 1024;

/** The inode, size and modification time of a file, to detect changes. */
export interface FileStamp {
  readonly ino: number;
  readonly size: number;
  readonly mtimeMs: number;
}

/** The beginning of a line in a log: the position of its first entry, and its byte offset. */
export interface LinePosition {
  readonly seq: number;
  readonly offset: number;
}

/** Identifies the file of a log. */
export interface LogIdentity {
  readonly paths: LogPaths;
  readonly ino: number;
  /** The offset after the first line. */
  readonly headerEnd: number;
  /** A checksum of the first line. */
  readonly headerCheck: number;
}

/** The fold of a log up to the beginning of a line. */
export interface LogPoint {
  readonly end: LinePosition;
  readonly head: SessionHead;
  /** The settings of the head, followed by the earlier ones that they refer to. */
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
  /** The earlier settings that those of the head refer to. */
  readonly earlier: readonly SettingsNode[];
}

/** The part of a log that its index covers: up to which offset, and how long the index line is. */
export interface IndexCoverage {
  readonly offset: number;
  readonly length: number;
}

/** The coverage of a missing index. */
export const NO_INDEX: IndexCoverage = { offset: 0, length: 0 };

/** The stamp of a file's stats. */
export function stampOf({ ino, size, mtimeMs }: Pick<Stats, "ino" | "size" | "mtimeMs">): FileStamp {
  return { ino, size, mtimeMs };
}

/** Whether a file is unchanged since its stamp was taken. */
export function sameStamp(stamp: FileStamp | null, { ino, size, mtimeMs }: FileStamp): boolean {
  return stamp !== null && stamp.size === size && stamp.mtimeMs === mtimeMs && stamp.ino === ino;
}

/** A checksum of the bytes before an offset of an open log. It shows whether a log is still the same up to there. */
export function tailAt(fd: number, offset: number): number {
  const length = Math.min(offset, TAIL_BYTES);
  return crc32(readChunk(fd, offset - length, length));
}

/**
 * Reads the index of an open log: the point at which folding can begin, and what the index covers. Null if the index is
 * missing, or does not match the file as it is now.
 */
export function readIndex(
  identity: LogIdentity,
  header: SessionHeader,
  fd: number,
): { readonly point: LogPoint; readonly coverage: IndexCoverage } | null {
  const found = linesOf(identity, fd);
  if (found === null) return null;
  const { line, lastStamp, coverage } = found;
  const stamp = fstatSync(fd);
  // A file of the same size with another time, or a shorter one, was changed in place: the index is invalid.
  if (stamp.size < lastStamp.size || (stamp.size === lastStamp.size && !sameStamp(lastStamp, stamp))) return null;
  const { seq, offset, head, earlier } = freezeDeep(line);
  const settings = head.path.settings === null ? [] : [head.path.settings, ...earlier];
  return { point: { end: { seq, offset }, head: Object.freeze({ ...head, header }), settings }, coverage };
}

/**
 * Writes the stamp of a log to its index, and the log's head too if the log has grown enough since the head was last
 * written. Call it under the log's lock, when writing has ended. `coverage` is null if other processes may have changed the
 * index. Returns the new coverage.
 */
export function writeIndex(
  identity: LogIdentity,
  fd: number,
  point: LogPoint,
  coverage: IndexCoverage | null,
): IndexCoverage {
  const known = coverage ?? linesOf(identity, fd)?.coverage ?? NO_INDEX;
  const due = point.end.offset - known.offset >= Math.max(INDEXED_BYTES_MIN, known.length * LOG_BYTES_PER_INDEX_BYTE);
  // A stamp is of no use without the head in the first line.
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

/** Formats a line of an index: a head or a stamp, after its checksum. */
export function withChecksum(value: object): string {
  const json = JSON.stringify(value);
  return `${crc32(json).toString(16).padStart(8, "0")} ${json}\n`;
}

/** Reads the head line of an open log's index, and the log's last stamp, which may be in a second line. */
function linesOf(
  { paths, headerCheck, ino }: LogIdentity,
  fd: number,
): { readonly line: IndexLine; readonly lastStamp: FileStamp; readonly coverage: IndexCoverage } | null {
  let text: string;
  try {
    text = readFileSync(paths.index, "utf8");
  } catch {
    // Treat an unreadable index as missing: it can be rebuilt from the log.
    return null;
  }
  const [first = "", second = ""] = text.split("\n");
  const line = parseChecked(first) as IndexLine | null;
  if (line?.format !== FORMAT || line.log[0] !== headerCheck || line.log[1] !== ino) return null;
  if (tailAt(fd, line.offset) !== line.tail) return null;
  const [, , size, mtimeMs] = line.log;
  const lastStamp = (parseChecked(second) as FileStamp | null) ?? { ino, size, mtimeMs };
  return { line, lastStamp, coverage: { offset: line.offset, length: Buffer.byteLength(first) + 1 } };
}

function parseChecked(text: string): unknown {
  const json = text.slice(9);
  if (text[8] !== " " || crc32(json) !== Number.parseInt(text.slice(0, 8), 16)) return null;
  return JSON.parse(json);
}
