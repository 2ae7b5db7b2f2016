import { basename } from "node:path";
import { crc32 } from "node:zlib";
import { SessionDamagedError, SessionError, show } from "../../session/errors.ts";
import { checkHeader, FORMAT_VERSION, type SessionHeader } from "../../session/log/header.ts";
import { HEADER_BYTES_MAX } from "../../session/limits.ts";
import { jsonErrorOf, NEWLINE, parseJson, type RawLine } from "./log-line.ts";
import { parseFileName } from "./file-names.ts";
import { readChunk } from "./read-lines.ts";

const FIRST_BYTES = 16 * 1024;
/** A character of a header takes at most six bytes. */
const LINE_BYTES_MAX = HEADER_BYTES_MAX * 6;

/** The first line of a log. */
export interface LogHeader {
  readonly header: SessionHeader;
  /** Where the line ends. */
  readonly end: number;
  /** A checksum of the line that stays the same when its version is raised in place. */
  readonly check: number;
  /** Of a line of an earlier version: the byte that has to be another for this one; null where that is not enough. */
  readonly versionAt: number | null;
}

/**
 * Reads the first line of a session's file.
 *
 * @throws {SessionError} `NOT_A_SESSION` for a file of another kind, `UNSUPPORTED_VERSION` for one of a later version.
 * @throws {SessionDamagedError} when the line is that of a session, but cannot be read.
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

/** The first line of a file, as far as a header can reach. */
export function readFirstLine(fd: number): RawLine {
  for (let size = FIRST_BYTES; ; size = LINE_BYTES_MAX) {
    const chunk = readChunk(fd, 0, size);
    const newline = chunk.indexOf(NEWLINE);
    if (newline >= 0) return { offset: 0, length: newline + 1, bytes: chunk.subarray(0, newline) };
    if (chunk.length < size || size === LINE_BYTES_MAX) return { offset: 0, length: chunk.length, bytes: chunk };
  }
}

/** The header that a session's first line holds. Throws as `readHeader` does. */
export function parseHeader(line: RawLine, path: string): SessionHeader {
  const damaged = (reason: string, cause?: unknown): SessionDamagedError =>
    new SessionDamagedError({ path, line: 1, offset: 0, reason, cause });
  const looksOurs = parseFileName(basename(path)) !== null || line.bytes.includes('"type":"session"');
  if (line.length === line.bytes.length) {
    if (line.length === 0 || !looksOurs)
      throw notASession(path, line.length === 0 ? "it is empty" : "its first line has no end");
    throw damaged("its first line, the header, has no end");
  }
  const value = parseJson(line);
  if (typeof value === "string") {
    if (!looksOurs) throw notASession(path, `of its first line, ${value}`);
    throw damaged(`of the header, ${value}`, jsonErrorOf(line.bytes));
  }
  if ((value.json as { type?: unknown } | null)?.type !== "session")
    throw notASession(path, "its first line is no session header");
  try {
    return checkHeader(value.json);
  } catch (cause) {
    if (cause instanceof SessionError && cause.code === "UNSUPPORTED_VERSION") throw cause;
    throw damaged(cause instanceof Error ? cause.message.replace(/\.$/, "") : "the header is not valid", cause);
  }
}

/** The line with this version in place of an earlier one, where one byte makes the difference and nothing else changes. */
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
