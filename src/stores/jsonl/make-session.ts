import { join } from "node:path";
import { planFirst, type StoredEntry } from "../../session/log/append-plan.ts";
import type { CheckedDraft } from "../../session/log/draft.ts";
import type { Entry } from "../../session/log/entry.ts";
import { UnknownEntryError } from "../../session/errors.ts";
import { emptyHead, type SessionHead } from "../../session/log/fold.ts";
import { forkedHeader } from "../../session/log/forked-header.ts";
import { FORMAT_VERSION, type SessionHeader } from "../../session/log/header.ts";
import type { ForkOptions } from "../../session/store.ts";
import { checkSessionLimits, sessionLimitsOf, type MakeLimits } from "../complete/session-limits.ts";
import { sessionExists } from "../complete/session-exists.ts";
import type { LogFile } from "./log-file.ts";
import type { LogPoint } from "./log-index.ts";
import { formatEntry } from "./log-line.ts";
import { copyLog, writeFileAtomically, removeTemporaryFiles, writeLines } from "./write-file-atomically.ts";
import { OpenFile } from "./read-lines.ts";
import { pathsOf, sessionFileName } from "./file-names.ts";
import { markOpenRuns } from "./open-run-marks.ts";
import type { SessionFiles } from "./session-files.ts";

/**
 * Creates a session's file with the current format version. Its name is derived from the header, or `path` names another
 * file of the directory. The content is written before the directory is locked, since that takes long for many entries.
 */
export async function createSession(
  files: SessionFiles,
  header: SessionHeader,
  drafts: readonly CheckedDraft[],
  { maxOpenPerUser, path }: { readonly maxOpenPerUser?: number; readonly path?: string },
): Promise<SessionHead> {
  files.checkWritable();
  const { head, added } = planFirst(emptyHead(header), drafts, files.options.clock().toISOString());
  const lines = added.map(({ entry }) => formatEntry(entry));
  const target = path ?? join(files.options.directory, sessionFileName(header));
  let offset = 0;
  const write = async (fd: number): Promise<void> => {
    await writeLines(fd, [JSON.stringify({ ...header, version: FORMAT_VERSION })]);
    offset = await writeLines(fd, lines);
  };
  const made = writeFileAtomically(target, write, { ...files.options, replaces: false }, (put) =>
    files.change(async () => {
      await (files.cleanup ??= removeTemporaryFiles(files.options.directory));
      checkFree(files, header.id);
      await checkCapacity(files, header, { maxOpenPerUser });
      if (head.openRuns.length > 0) markOpenRuns(pathsOf(target));
      await put();
      const file = path === undefined ? files.live.register(target, header.id) : await files.live.open(target);
      // The state of the new file is known without reading it, except for settings: they need the positions of their entries.
      const known = head.version > 0 && head.path.settings === null;
      return headOfMade(file, known ? { end: { seq: head.version, offset }, head, settings: [] } : null);
    }),
  );
  files.pendingCreates = Promise.allSettled([files.pendingCreates, made]).then(() => {});
  return made;
}

/** Creates the file of a fork with the first entries of the source's log. Call it under the directory's lock. */
export async function forkSession(
  files: SessionFiles,
  sourceId: string,
  header: SessionHeader,
  options: ForkOptions,
): Promise<SessionHead> {
  const source = await files.live.existing(sourceId);
  const last = await lastEntry(source, sourceId, options.at);
  checkFree(files, header.id);
  const version = last === null ? 0 : last.seq + 1;
  const part = await source.query(() => source.state.prefixOf(version));
  const { state } = source;
  const forkedFrom = { entryId: last?.id ?? null, version };
  const forked = { ...forkedHeader(header, state.head.header, forkedFrom), version: FORMAT_VERSION } as const;
  await checkCapacity(files, forked, options);
  const path = join(files.options.directory, sessionFileName(header));
  const whole = version === state.head.version;
  await writeFileAtomically(path, (fd) => copyLog(state.identity, part, forked, fd), {
    ...files.options,
    replaces: false,
  });
  const file = files.live.register(path, header.id);
  // If the source grew while it was copied, its cached state is not that of the fork.
  if (!whole || version !== state.head.version) return headOfMade(file, null);
  const { end, head, settings } = state.point;
  // The open runs of the source belong to the source only.
  const forkHead = { ...head, openRuns: [] };
  return headOfMade(file, { end: { ...end, offset: end.offset - state.identity.headerEnd }, head: forkHead, settings });
}

/** The head of a session that was just created. The file is only read if its state is not known. */
async function headOfMade(file: LogFile, known: LogPoint | null): Promise<SessionHead> {
  if (known === null) await file.refresh();
  else file.setCreatedState(known);
  // With an index other processes need not read a long new log from its beginning, such as an imported one.
  using open = new OpenFile(file.paths.log);
  file.index(open.fd);
  return file.head;
}

/** The last entry that a fork shares with its source; null if it shares none. */
async function lastEntry(source: LogFile, sourceId: string, at: string | null | undefined): Promise<Entry | null> {
  if (at === null) return null;
  if (at === undefined) {
    const range = { after: -1, before: Number.MAX_SAFE_INTEGER, limit: 1, reverse: true };
    const [page = []] = await source.query((log) => [...log.readPages(range)]);
    return page[0] ?? null;
  }
  const found = await source.query<StoredEntry | undefined>((log) => log.find(at));
  if (found === undefined) throw new UnknownEntryError(sourceId, at);
  return found.entry;
}

function checkFree({ live, trash, lock: { generation } }: SessionFiles, id: string): void {
  if (live.has(id, generation) || trash.has(id, generation)) throw sessionExists(id);
}

/** Checks the limits of a new session. Call it under the directory's lock. @throws {SessionCapacityError} */
export async function checkCapacity(files: SessionFiles, header: SessionHeader, limits: MakeLimits): Promise<void> {
  const counted = sessionLimitsOf(header, limits);
  if (counted.length === 0) return;
  const { sessions } = await files.scan(false);
  checkSessionLimits(() => sessions.map(({ head }) => head), counted);
}
