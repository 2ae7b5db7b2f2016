import { SessionError } from "../../session/errors.ts";

const NAMES: Readonly<Record<number, string>> = {
  5: "SQLITE_BUSY",
  6: "SQLITE_LOCKED",
  8: "SQLITE_READONLY",
  10: "SQLITE_IOERR",
  11: "SQLITE_CORRUPT",
  13: "SQLITE_FULL",
  14: "SQLITE_CANTOPEN",
  23: "SQLITE_AUTH",
  26: "SQLITE_NOTADB",
};

const MESSAGES: Readonly<Record<string, string>> = {
  SQLITE_READONLY: "may only be read; allow this process to write the file and its directory",
  SQLITE_IOERR: "could not be read or written; check the disk it is on",
  SQLITE_CORRUPT: "is damaged; restore it from a copy, or recover what is left with the sqlite3 program",
  SQLITE_FULL: "could not grow, as the disk or a quota is full; make room and try again",
  SQLITE_CANTOPEN: "cannot be opened; check that its directory exists and may be written to",
  SQLITE_NOTADB: "is not an SQLite database; choose another file",
};

/** What a driver threw, as an error of ours; a mistake in the program itself stays what it is. */
export function sqliteFailure(error: unknown, place: string): unknown {
  const name = nameOf(error);
  if (name === null || error instanceof SessionError) return error;
  if (name === "SQLITE_BUSY" || name === "SQLITE_LOCKED") {
    return new SessionError("SESSION_BUSY", `The database ${place} is locked by another process; try again.`, {
      cause: error,
    });
  }
  const problem = MESSAGES[name] ?? `failed with ${name}: ${(error as Error).message}`;
  return new SessionError("STORE_FAILED", `The database ${place} ${problem}.`, { cause: error });
}

/** The primary result code of a driver's error, which each driver carries in a place of its own. */
function nameOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code, errcode, rawCode } = error as { code?: unknown; errcode?: unknown; rawCode?: unknown };
  const number = errcode ?? rawCode;
  if (typeof number === "number") return NAMES[number & 0xff] ?? `code ${number}`;
  if (typeof code === "string" && code.startsWith("SQLITE_")) return code.split("_", 2).join("_");
  // libsql reports a file it cannot open without a code, as text that ends in the number.
  return /^ConnectionFailed\(.*: 14"?\)$/s.test(error.message) ? "SQLITE_CANTOPEN" : null;
}
