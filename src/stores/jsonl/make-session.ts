import { join } from "node:path";
import { planFirst, type StoredEntry } from "../../session/log/append-plan.ts";
import type { CheckedDraft } from "../../session/log/draft.ts";
import type { Entry } from "../../session/log/entry.ts";
import { UnknownEntryError } from "../../session/errors.ts";
import { emptyHead, type SessionHead } from "../../session/log/fold.ts";
import { forkedHeader } from "../../session/log/forked-header.ts";
import { FORMAT_VERSION, type SessionHeader } from "../../session/log/header.ts";
import type { ForkOptions } from "../../session/store.ts";
import { checkLimits, limitsOf, type MakeLimits } from "../complete/check-limits.ts";
import { sessionExists } from "../rows/row-port.ts";
import type { LogFile } from "./log-file.ts";
import type { LogPoint } from "./log-index.ts";
import { formatEntry } from "./log-line.ts";
import { copyLog, putFile, removeHalfMade, writeLines } from "./new-file.ts";
import { OpenFile } from "./read-lines.ts";
import { sessionFileName } from "./file-names.ts";
import type { SessionFiles } from "./session-files.ts";

/**
 * Makes a session's file, of the present version, and of the name that it has unless another path in the directory is given. It is
 * written before the directory is locked, as that takes long for a session that comes with many entries.
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
  const made = putFile(target, write, { ...files.options, replaces: false }, (put) =>
    files.change(async () => {
      await (files.tidied ??= removeHalfMade(files.options.directory));
      checkFree(files, header.id);
      await checkRoom(files, header, { maxOpenPerUser });
      await put();
      const file = path === undefined ? files.live.expect(target, header.id) : await files.live.open(target);
      // What was just written is known, but for settings, which are found by where they stand.
      const known = head.version > 0 && head.path.settings === null;
      return headOfMade(file, known ? { end: { seq: head.version, offset }, head, settings: [] } : null);
    }),
  );
  files.making = Promise.allSettled([files.making, made]).then(() => {});
  return made;
}

/** Makes a session's file with the beginning of another one's log. Call it under the directory's lock. */
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
  const part = await source.ask(() => source.state.upTo(version));
  const { state } = source;
  const forkedFrom = { entryId: last?.id ?? null, version };
  const forked = { ...forkedHeader(header, state.head.header, forkedFrom), version: FORMAT_VERSION } as const;
  await checkRoom(files, forked, options);
  const path = join(files.options.directory, sessionFileName(header));
  const whole = version === state.head.version;
  await putFile(path, (fd) => copyLog(state.identity, part, forked, fd), { ...files.options, replaces: false });
  const file = files.live.expect(path, header.id);
  // The source may have grown while it was copied.
  if (!whole || version !== state.head.version) return headOfMade(file, null);
  const { end, head, settings } = state.point;
  // A run of the source goes on there, or not at all.
  const begun = { ...head, openRuns: [] };
  return headOfMade(file, { end: { ...end, offset: end.offset - state.identity.headerEnd }, head: begun, settings });
}

/** The head of a session that was just made, of which nothing is read where all is known. */
async function headOfMade(file: LogFile, known: LogPoint | null): Promise<SessionHead> {
  if (known === null) await file.refresh();
  else file.adopt(known);
  // Others then need not read through a long log that was made at once, such as an imported one.
  using open = new OpenFile(file.paths.log);
  file.index(open.fd);
  return file.head;
}

/** The last entry that a fork takes over; null for none. */
async function lastEntry(source: LogFile, sourceId: string, at: string | null | undefined): Promise<Entry | null> {
  if (at === null) return null;
  if (at === undefined) {
    const range = { after: -1, before: Number.MAX_SAFE_INTEGER, limit: 1, reverse: true };
    const [page = []] = await source.ask((log) => [...log.readPages(range)]);
    return page[0] ?? null;
  }
  const found = await source.ask<StoredEntry | undefined>((log) => log.find(at));
  if (found === undefined) throw new UnknownEntryError(sourceId, at);
  return found.entry;
}

function checkFree({ live, trash, lock: { generation } }: SessionFiles, id: string): void {
  if (live.has(id, generation) || trash.has(id, generation)) throw sessionExists(id);
}

/** Call it under the directory's lock. @throws {SessionCapacityError} when there are as many sessions as there may be. */
export async function checkRoom(files: SessionFiles, header: SessionHeader, limits: MakeLimits): Promise<void> {
  const counted = limitsOf(header, limits);
  if (counted.length === 0) return;
  const { sessions } = await files.scan(false);
  checkLimits(() => sessions.map(({ head }) => head), counted);
}
