import { join } from "node:path";
import { type AppendPlan, planFirst } from "../../session/log/append-plan.ts";
import type { CheckedDraft } from "../../session/log/draft.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionCapacityError, SessionError, UnknownEntryError } from "../../session/errors.ts";
import { emptyHead, type SessionHead } from "../../session/log/fold.ts";
import { forkedHeader } from "../../session/log/forked-header.ts";
import { FORMAT_VERSION, type SessionHeader } from "../../session/log/header.ts";
import { isOpen } from "../../session/query.ts";
import type { SettingsNode } from "../../session/log/settings.ts";
import type { DriverForkOptions } from "../../session/store-driver.ts";
import type { LogFile } from "./log-file.ts";
import { formatEntry } from "./log-line.ts";
import { copyLog, putFile, writeLines } from "./new-file.ts";
import { sessionFileName } from "./places.ts";
import type { SessionFiles } from "./session-files.ts";

/**
 * Makes a session's file, of the name that it has unless another path in the directory is given. Call it under the
 * directory's lock.
 */
export async function createSession(
  files: SessionFiles,
  header: SessionHeader,
  drafts: readonly CheckedDraft[],
  { maxOpenPerUser, path }: { readonly maxOpenPerUser?: number; readonly path?: string },
): Promise<SessionHead> {
  await checkFree(files, header.id);
  await checkOpen(files, header.userId, maxOpenPerUser);
  const plan = planFirst(emptyHead(header), drafts, files.now().toISOString());
  const entries = plan.added.map(({ entry }) => formatEntry(entry));
  const target = path ?? join(files.options.directory, sessionFileName(header));
  const lines = [JSON.stringify(presentHeader(header)), ...entries];
  await putFile(target, (fd) => writeLines(fd, lines), { ...files.options, replaces: false });
  if (path !== undefined) return (await files.live.open(target)).head;
  const file = files.live.expect(target, header.id);
  const offset = entries.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, 0);
  file.adopt({ end: { seq: entries.length, offset }, head: plan.head, settings: settingsIn(plan) });
  return file.head;
}

/** Makes a session's file with the beginning of another one's log. Call it under the directory's lock. */
export async function forkSession(
  files: SessionFiles,
  sourceId: string,
  header: SessionHeader,
  options: DriverForkOptions,
): Promise<SessionHead> {
  const source = await files.live.existing(sourceId);
  const last = await lastEntry(source, sourceId, options.at);
  await checkFree(files, header.id);
  await checkForks(files, sourceId, options.maxForks);
  await checkOpen(files, header.userId, options.maxOpenPerUser);
  const version = last === null ? 0 : last.seq + 1;
  const part = await source.ask(() => source.state.upTo(version));
  const { state } = source;
  const forked = presentHeader(forkedHeader(header, state.head.header, { entryId: last?.id ?? null, version }));
  const path = join(files.options.directory, sessionFileName(header));
  const whole = version === state.head.version;
  await putFile(path, (fd) => copyLog(state.identity, part, forked, fd), { ...files.options, replaces: false });
  const file = files.live.expect(path, header.id);
  // The source may have grown while it was copied.
  if (whole && version === state.head.version) {
    const { end, head, settings } = state.point;
    // A run of the source goes on there, or not at all.
    const begun = { ...head, openRuns: [] };
    file.adopt({ end: { ...end, offset: end.offset - state.identity.headerEnd }, head: begun, settings });
  } else await file.refresh();
  return file.head;
}

/** The settings on the path of a plan's leaf, the last first. */
function settingsIn({ added, head }: AppendPlan): SettingsNode[] {
  const nodes: SettingsNode[] = [];
  for (let node = head.path.settings; node !== null; ) {
    nodes.push(node);
    node = node.before === null ? null : (added[node.before]?.path?.settings ?? null);
  }
  return nodes;
}

/** A copy of a session of an earlier version is a new file, and has what this version writes in it. */
function presentHeader(header: SessionHeader): SessionHeader {
  return { ...header, version: FORMAT_VERSION };
}

/** The last entry that a fork takes over; null for none. */
async function lastEntry(source: LogFile, sourceId: string, at: string | null | undefined): Promise<Entry | null> {
  if (at === null) return null;
  if (at === undefined) {
    const range = { after: -1, before: Number.MAX_SAFE_INTEGER, limit: 1, reverse: true };
    for (const entry of await source.ask((log) => log.read(range))) return entry;
    return null;
  }
  const entry = await source.ask((log) => log.find(at));
  if (entry === null) throw new UnknownEntryError(sourceId, at);
  return entry;
}

async function checkFree(files: SessionFiles, id: string): Promise<void> {
  const { generation } = files.lock;
  if (!files.live.has(id, generation) && !files.trash.has(id, generation)) return;
  throw new SessionError("SESSION_EXISTS", `There is already a session ${id}; use another id.`);
}

/** Call it under the directory's lock. @throws {SessionCapacityError} when a user has that many open sessions. */
export async function checkOpen(files: SessionFiles, userId: string | null, limit: number | undefined): Promise<void> {
  if (limit === undefined || userId === null) return;
  const open = await count(files, (head) => head.header.userId === userId && isOpen(head));
  if (open >= limit) throw new SessionCapacityError("open sessions of a user", limit);
}

async function checkForks(files: SessionFiles, sourceId: string, limit: number | undefined): Promise<void> {
  if (limit === undefined) return;
  const forks = await count(files, ({ header }) => header.forkedFrom?.sessionId === sourceId);
  if (forks >= limit) throw new SessionCapacityError("forks of a session", limit);
}

async function count(files: SessionFiles, counts: (head: SessionHead) => boolean): Promise<number> {
  const listed = await files.live.list();
  return listed.filter(({ head }) => head !== null && counts(head)).length;
}
