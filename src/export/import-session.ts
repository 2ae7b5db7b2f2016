import { SessionError } from "../session/errors.ts";
import type { Entry } from "../session/entry.ts";
import type { SessionHead } from "../session/fold.ts";
import { checkHeader, type SessionHeader } from "../session/header.ts";
import type { CreateOptions, SessionStore } from "../session/store.ts";
import { entryProblem } from "../stores/jsonl/log-line.ts";

/** What to change of an imported session. */
export interface ImportOptions {
  /** Whose session it becomes; the user of the file when this is not given. */
  readonly userId?: string | null;
  /** Its id in this store; the id of the file when this is not given. */
  readonly id?: string;
  /** What the store is to refuse in the same step. */
  readonly limits?: Pick<CreateOptions, "maxOpenPerUser" | "variablesBytesMax">;
}

/**
 * Makes a session of the lines of a JSONL export or of a jsonl store's file, each with or without its newline.
 *
 * - Ids, order, parents, times, labels and entry types that this version does not know stay as they are.
 * - All lines are read and checked first, and the session is made in one step: it is there as a whole, or not at all.
 *
 * @throws {SessionError} `NOT_A_SESSION` when the first line is no session's header, `UNSUPPORTED_VERSION` for a later
 * format, `DAMAGED` for a line that is cut off or not valid, `UNKNOWN_ENTRY` for an entry that names one that is not
 * there, `SESSION_EXISTS` for an id that is taken.
 */
export async function importSession(
  store: SessionStore,
  lines: AsyncIterable<string> | Iterable<string>,
  options: ImportOptions = {},
): Promise<SessionHead> {
  let header: SessionHeader | null = null;
  const entries: Entry[] = [];
  const ids = new Set<string>();
  let number = 0;
  for await (const line of lines) {
    number++;
    if (header === null) header = parseHeader(line);
    else {
      for (const entry of parseEntries(line, number)) {
        if (ids.has(entry.id)) throw damaged(number, "it repeats the id of an earlier entry");
        ids.add(entry.id);
        entries.push(entry);
      }
    }
  }
  if (header === null) throw notASession("it is empty");
  const { id = header.id, userId = header.userId } = options;
  return store.create(checkHeader({ ...header, id, userId }), { entries, ...options.limits });
}

function parseHeader(line: string): SessionHeader {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    if (line.startsWith('{"type":"session"')) throw damaged(1, "the header is not JSON", cause);
    throw notASession("its first line is not JSON", cause);
  }
  if ((value as { readonly type?: unknown } | null)?.type !== "session")
    throw notASession("its first line is no session's header");
  return checkHeader(value);
}

function parseEntries(line: string, number: number): Entry[] {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw damaged(number, "it is cut off or not JSON", cause);
  }
  const items: unknown[] = Array.isArray(value) ? value : [value];
  if (items.length === 0) throw damaged(number, "it is an empty list");
  for (const item of items) {
    const problem = entryProblem(item);
    if (problem !== null) throw damaged(number, problem);
  }
  return items as Entry[];
}

function damaged(line: number, reason: string, cause?: unknown): SessionError {
  return new SessionError("DAMAGED", `Line ${line} cannot be imported: ${reason}; nothing was imported.`, { cause });
}

function notASession(reason: string, cause?: unknown): SessionError {
  return new SessionError("NOT_A_SESSION", `This is not a session's file: ${reason}; nothing was imported.`, { cause });
}
