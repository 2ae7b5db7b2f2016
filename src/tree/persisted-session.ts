import { checkOptionsOf } from "../session/check-arguments.ts";
import { resolve, sep } from "node:path";
import type { EntryOf } from "../session/log/entry.ts";
import { SessionError, SessionNotFoundError, show } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { SessionHeader } from "../session/log/header.ts";
import { checkSessionId } from "../session/id.ts";
import type { SessionStore } from "../session/store.ts";
import type { Transcript } from "../session/value/transcript.ts";
import type { Usage } from "../session/usage.ts";
import { finalPathOf, partialPathOf } from "../stores/jsonl/file-names.ts";
import { openSessionFiles } from "./open-session-files.ts";
import { openFile } from "./file-trees.ts";
import { defaultSessionDirectory } from "./home.ts";
import { readSpending, readTranscript } from "./read-session.ts";
import { isFile } from "./run-file.ts";

/** A session that was loaded from its file. */
export interface PersistedSession {
  readonly header: SessionHeader;
  /** The transcript at its leaf. The summary of a compaction replaces the entries before it. */
  readonly transcript: Transcript;
  /** The usage of the session itself; of the messages on the path to the leaf if no run created the session. */
  readonly usage: Usage | null;
  readonly cost: number | null;
  /** The system prompt of its last run. */
  readonly systemPrompt: string | null;
  /** Whether its last run ended normally. */
  readonly closed: boolean;
  /** The current path of the file. */
  readonly path: string;
  /** The trailer that the last run wrote when it ended; null if it did not. */
  readonly trailer: EntryOf<"trailer"> | null;
}

/** Options of the functions for session files. */
export interface PersistedOptions {
  /** The directory in which ids are looked up (default: `defaultSessionDirectory()`). */
  readonly directory?: string;
}

/**
 * Loads a session from its file, finished or not, by its id or by a path. A path contains a separator or ends in `.jsonl`.
 *
 * @throws {SessionNotFoundError} if there is none, and the errors of `SessionTree.open` for a file that cannot be read.
 */
export async function loadSession(idOrPath: string, options: PersistedOptions = {}): Promise<PersistedSession> {
  checkOptionsOf(options, { directory: true }, "loadSession");
  const path = await findSessionFile(idOrPath, options);
  const { backing, head } = await openFile(path, { readOnly: true });
  try {
    const { transcript } = await readTranscript(backing.store, head);
    const { systemPrompt } = await backing.store.settings(head.header.id, head.path);
    const trailer = head.closed ? await lastTrailer(backing.store, head) : null;
    const spent = await readSpending(backing.store, head);
    return { header: head.header, transcript, ...spent, systemPrompt, closed: head.closed, path, trailer };
  } finally {
    await backing.close();
  }
}

/**
 * Finds the file of a session by its id or by a path. The partial file of a run is found by its final name too.
 *
 * @throws {SessionNotFoundError} if there is none.
 */
export async function findSessionFile(idOrPath: string, options: PersistedOptions = {}): Promise<string> {
  if (isFilePath(idOrPath)) {
    for (const path of [idOrPath, finalPathOf(idOrPath), partialPathOf(idOrPath)])
      if (await isFile(path)) return resolve(path);
    throw new SessionError("SESSION_NOT_FOUND", `There is no session file ${show(idOrPath)}.`);
  }
  checkSessionId(idOrPath);
  const directory = options.directory ?? defaultSessionDirectory();
  await using store = await openSessionFiles({ directory, readOnly: true });
  const path = await store.pathOf(idOrPath);
  if (path === null) throw new SessionNotFoundError(idOrPath);
  return path;
}

/** Whether a text names a file, and not a session in the default directory. */
export function isFilePath(idOrPath: string): boolean {
  if (typeof idOrPath !== "string") return false;
  return idOrPath.includes("/") || idOrPath.includes(sep) || finalPathOf(idOrPath).endsWith(".jsonl");
}

/** The last trailer in the log of a closed session. Only facts can come after it. */
async function lastTrailer(store: SessionStore, head: SessionHead): Promise<EntryOf<"trailer"> | null> {
  for await (const entry of store.read(head.header.id, { reverse: true })) {
    if (entry.type === "trailer") return entry;
  }
  return null;
}
