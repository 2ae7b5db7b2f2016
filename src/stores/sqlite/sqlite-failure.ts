import { SessionError } from "../../session/errors.ts";

/** The primary result codes of SQLite that get their own message. */
const CODES: Readonly<Record<string, readonly [code: number, problem?: string]>> = {
  SQLITE_BUSY: [5],
  SQLITE_LOCKED: [6],
  SQLITE_READONLY: [8, "is read-only; allow this process to write the file and its directory"],
  SQLITE_IOERR: [10, "could not be read or written; check the disk it is on"],
  SQLITE_CORRUPT: [11, "is damaged; restore it from a copy, or recover what is left with the sqlite3 program"],
  SQLITE_FULL: [13, "could not grow, as the disk or a quota is full; make room and try again"],
  SQLITE_CANTOPEN: [14, "cannot be opened; check that its directory exists and may be written to"],
  SQLITE_AUTH: [23],
  SQLITE_NOTADB: [26, "is not an SQLite database; choose another file"],
};

/** Converts an error of a driver to a `SessionError`. Other errors, such as a `TypeError`, are returned unchanged. */
export function sqliteFailure(error: unknown, address: string): unknown {
  const name = nameOf(error);
  if (name === null || error instanceof SessionError) return error;
  if (name === "SQLITE_BUSY" || name === "SQLITE_LOCKED") {
    return new SessionError("SESSION_BUSY", `The database ${address} is locked by another process; try again.`, {
      cause: error,
    });
  }
  const problem = CODES[name]?.[1] ?? `failed with ${name}: ${(error as Error).message}`;
  return new SessionError("STORE_FAILED", `The database ${address} ${problem}.`, { cause: error });
}

/** The name of the primary result code of a driver's error; each driver stores it in a different field. */
function nameOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code, errcode, rawCode } = error as { code?: unknown; errcode?: unknown; rawCode?: unknown };
  const number = errcode ?? rawCode;
  if (typeof number === "number")
    return Object.keys(CODES).find((name) => CODES[name]?.[0] === (number & 0xff)) ?? `code ${number}`;
  if (typeof code === "string" && code.startsWith("SQLITE_")) return code.split("_", 2).join("_");
  // For a file that it cannot open, libsql sets no code; its message ends in the number.
  return /^ConnectionFailed\(.*: 14"?\)$/s.test(error.message) ? "SQLITE_CANTOPEN" : null;
}
