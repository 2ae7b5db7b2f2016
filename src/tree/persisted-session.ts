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

/** A session as its file holds it. */
export interface PersistedSession {
  readonly header: SessionHeader;
  /** What it says at its leaf; a compaction's summary stands for what it replaced. */
  readonly transcript: Transcript;
  /** What it spent itself, of the messages on the path to the leaf where no run made it. */
  readonly usage: Usage | null;
  readonly cost: number | null;
  /** The instructions that its last run went by. */
  readonly systemPrompt: string | null;
  /** Whether its last run ended in good order. */
  readonly closed: boolean;
  /** The file, as it is named now. */
  readonly path: string;
  /** How the last run closed the file; null when it did not. */
  readonly trailer: EntryOf<"trailer"> | null;
}

/** Where session files are looked for. */
export interface PersistedOptions {
  /** Where an id is looked for (default: `defaultSessionDirectory()`). */
  readonly directory?: string;
}

/**
 * Reads a session from its file, finished or not: by its id, or by a path, which has a separator or ends in `.jsonl`.
 *
 * @throws {SessionNotFoundError} when there is none, and as `SessionTree.open` does for a file that cannot be read.
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
 * The file of a session, by its id or a path; the file of a run that has not ended is found by its final name too.
 *
 * @throws {SessionNotFoundError} when there is none.
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

/** Of a closed session, only facts can follow the trailer. */
async function lastTrailer(store: SessionStore, head: SessionHead): Promise<EntryOf<"trailer"> | null> {
  for await (const entry of store.read(head.header.id, { reverse: true })) {
    if (entry.type === "trailer") return entry;
  }
  return null;
}
