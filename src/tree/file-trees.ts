import { stat } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import type { Entry } from "../session/log/entry.ts";
import { SessionError, SessionNotFoundError, show } from "../session/errors.ts";
import { inheritedUpTo, type SessionHead } from "../session/log/fold.ts";
import { createHeader, rootIdOf } from "../session/log/header.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { FileBacking, openFiles } from "./file-backing.ts";
import type { FileOptions } from "./file-options.ts";
import { defaultSessionDirectory } from "./home.ts";
import { type OpenedSession, StoreBacking } from "./tree-backing.ts";

/** Creates a session of a project, in a file. */
export function createFile(cwd: string, options: FileOptions): Promise<OpenedSession> {
  const header = createHeader({ cwd: resolve(cwd), ...(options.id === undefined ? {} : { id: options.id }) });
  return FileBacking.create(header, [], options);
}

/** Creates a session in memory. */
export async function createInMemory(cwd: string | undefined): Promise<OpenedSession> {
  const store = openMemoryStore();
  const head = await store.create(createHeader({ cwd: cwd === undefined ? null : resolve(cwd) }));
  return { backing: new StoreBacking(store), head };
}

/** Opens the session in a file of any name. */
export async function openFile(path: string, options: FileOptions): Promise<OpenedSession> {
  const whole = resolve(path);
  const found = await stat(whole).catch(() => null);
  if (found === null || !found.isFile()) {
    throw new SessionError("SESSION_NOT_FOUND", `There is no session file ${show(path)}.`);
  }
  const files = await openFiles(dirname(whole), options);
  try {
    const sessionId = await files.openFile(whole);
    const head = await files.head(sessionId);
    if (head === null) throw new SessionNotFoundError(sessionId);
    return {
      backing: await FileBacking.open(whole, files, sessionId, { ...options, directory: dirname(whole) }),
      head,
    };
  } catch (error) {
    await files.close();
    throw error;
  }
}

/** Opens the session of a project with the latest message, or creates one. */
export async function continueRecent(cwd: string, options: FileOptions): Promise<OpenedSession> {
  const directory = options.directory ?? defaultSessionDirectory();
  await using files = await openFiles(directory, { ...options, readOnly: true });
  const { items } = await files.list({ cwd: resolve(cwd), limit: 1 });
  const path = items[0] === undefined ? null : await files.pathOf(items[0].header.id);
  return path === null ? createFile(cwd, options) : openFile(path, options);
}

/** Copies a file's session with all its branches, as a new session of another project. */
export async function forkFile(sourcePath: string, targetCwd: string, options: FileOptions): Promise<OpenedSession> {
  const source = await openFile(sourcePath, { readOnly: true });
  try {
    const { header } = source.head;
    const entries: Entry[] = [];
    for await (const entry of source.backing.store.read(header.id)) entries.push(entry);
    return await FileBacking.create(
      derivedHeader(
        source.head,
        { cwd: resolve(targetCwd), entryId: entries.at(-1)?.id ?? null, version: entries.length, operator: "forkFrom" },
        options,
      ),
      entries,
      options,
    );
  } finally {
    await source.backing.close();
  }
}

/** The header of a session that is created from another one's entries. */
export function derivedHeader(
  source: SessionHead,
  from: {
    readonly cwd: string | null;
    readonly entryId: string | null;
    readonly version: number;
    /** How many of the entries were imported, if the entries are not simply the first ones of the source. */
    readonly imported?: number;
    readonly operator: string;
  },
  options: FileOptions,
): ReturnType<typeof createHeader> {
  const { id, userId, sandbox, metadata } = source.header;
  return createHeader({
    ...(options.id === undefined ? {} : { id: options.id }),
    userId,
    cwd: from.cwd,
    sandbox,
    metadata,
    lineage: { parents: [id], operator: from.operator, kind: "op_fork", extras: [] },
    forkedFrom: { sessionId: id, entryId: from.entryId, version: from.version },
    ...inheritedUpTo(source.header, from.imported ?? from.version),
    rootId: rootIdOf(source.header),
  });
}
