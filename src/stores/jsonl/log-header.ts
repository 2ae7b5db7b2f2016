import { basename } from "node:path";
import { crc32 } from "node:zlib";
import { SessionDamagedError, SessionError, show } from "../../session/errors.ts";
import { checkHeader, FORMAT_VERSION, type SessionHeader } from "../../session/log/header.ts";
import { HEADER_BYTES_MAX } from "../../session/limits.ts";
import { jsonErrorOf, NEWLINE, parseJson, type RawLine } from "./log-line.ts";
import { parseFileName } from "./file-names.ts";
import { readChunk } from "./read-lines.ts";

const FIRST_BYTES = 16 * 1024;
/** JSON writes one character as at most six bytes. */
const LINE_BYTES_MAX = HEADER_BYTES_MAX * 6;

/** The first line of a log. */
export interface LogHeader {
  readonly header: SessionHeader;
  /** The offset after the line. */
  readonly end: number;
  /** A checksum of the line with the current version, so that raising the version in place does not change it. */
  readonly check: number;
  /** The offset of the digit to overwrite in order to raise an older version; null if that is not enough or not needed. */
  readonly versionAt: number | null;
}

/**
 * Reads the first line of a session's file.
 *
 * @throws {SessionError} `NOT_A_SESSION` for a file of another kind, `UNSUPPORTED_VERSION` for one of a later version.
 * @throws {SessionDamagedError} if it is the line of a session and cannot be read.
 */
export function readHeader(fd: number, path: string): LogHeader {
  const line = readFirstLine(fd);
  const header = parseHeader(line, path);
  const raised = header.version === FORMAT_VERSION ? null : raiseLine(line, header);
  return {
    header,
    end: line.offset + line.length,
    check: crc32(raised?.bytes ?? line.bytes),
    versionAt: raised?.versionAt ?? null,
  };
}

/** The first line of a file, up to the maximum length of a header. */
export function readFirstLine(fd: number): RawLine {
  for (let size = FIRST_BYTES; ; size = LINE_BYTES_MAX) {
    const chunk = readChunk(fd, 0, size);
    const newline = chunk.indexOf(NEWLINE);
    if (newline >= 0) return { offset: 0, length: newline + 1, bytes: chunk.subarray(0, newline) };
    if (chunk.length < size || size === LINE_BYTES_MAX) return { offset: 0, length: chunk.length, bytes: chunk };
  }
}

/** Parses the header in a session's first line. Throws like `readHeader`. */
export function parseHeader(line: RawLine, path: string): SessionHeader {
  const damaged = (reason: string, cause?: unknown): SessionDamagedError =>
    new SessionDamagedError({ path, line: 1, offset: 0, reason, cause });
  const looksLikeSession = parseFileName(basename(path)) !== null || line.bytes.includes('"type":"session"');
  if (line.length === line.bytes.length) {
    if (line.length === 0 || !looksLikeSession)
      throw notASession(path, line.length === 0 ? "it is empty" : "its first line has no end");
    throw damaged("its first line, the header, has no end");
  }
  const value = parseJson(line);
  if (typeof value === "string") {
    if (!looksLikeSession) throw notASession(path, `of its first line, ${value}`);
    throw damaged(`of the header, ${value}`, jsonErrorOf(line.bytes));
  }
  if ((value.json as { type?: unknown } | null)?.type !== "session")
    throw notASession(path, "its first line is not a session header");
  try {
    return checkHeader(value.json);
  } catch (cause) {
    if (cause instanceof SessionError && cause.code === "UNSUPPORTED_VERSION") throw cause;
    throw damaged(cause instanceof Error ? cause.message.replace(/\.$/, "") : "the header is not valid", cause);
  }
}

/** The line with the current version, if overwriting one byte is enough to get it; otherwise null. */
function raiseLine(
  line: RawLine,
  header: SessionHeader,
): { readonly bytes: Buffer; readonly versionAt: number } | null {
  const before = line.bytes.indexOf(`"version":${header.version}`);
  if (before < 0) return null;
  const bytes = Buffer.from(line.bytes);
  const versionAt = bytes.write(`"version":${FORMAT_VERSION}`, before) + before - 1;
  const value = parseJson({ ...line, bytes });
  const wanted = JSON.stringify({ ...header, version: FORMAT_VERSION });
  return typeof value !== "string" && JSON.stringify(value.json) === wanted ? { bytes, versionAt } : null;
}

function notASession(path: string, reason: string): SessionError {
  return new SessionError("NOT_A_SESSION", `${show(path)} is not a session's file: ${reason}.`);
}
