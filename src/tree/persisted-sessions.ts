import { checkPath } from "../stores/complete/valid-arguments.ts";
import { checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import { existsSync } from "node:fs";
import { SessionError, show } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { LineageKind } from "../session/log/header.ts";
import { checkSessionId } from "../session/id.ts";
import { PAGE_ITEMS_MAX } from "../session/limits.ts";
import type { DamagedSession, SessionPage, SessionStore } from "../session/store.ts";
import { openSessionFiles } from "./open-session-files.ts";
import { defaultSessionDirectory } from "./home.ts";
import type { PersistedOptions } from "./persisted-session.ts";
import { findWriter } from "./run-file.ts";

const DIRECTORY: KeysOf<PersistedOptions> = { directory: true };

/** One session's file in a listing. */
export interface PersistedSummary {
  readonly id: string;
  readonly path: string;
  readonly createdAt: string;
  readonly kind: LineageKind;
  readonly operator: string;
  /** The number of messages on the path to the leaf. */
  readonly rowCount: number;
  /** Whether its last run ended normally. */
  readonly closed: boolean;
  /** Why the file cannot be read; then the other fields have no meaning. */
  readonly damage?: string;
}

/** Lists the sessions in a directory of files, oldest first. Files that cannot be read come last, each with its `damage`. */
export async function listPersistedSessions(options: PersistedOptions = {}): Promise<PersistedSummary[]> {
  const directory = directoryOf(options, "listPersistedSessions");
  await using store = await openSessionFiles({ directory, readOnly: true });
  const { heads, damaged } = await listAll(store);
  const rows: PersistedSummary[] = [];
  for (const { header, path, closed } of heads) {
    const { kind, operator } = header.lineage;
    const { id, createdAt } = header;
    const file = await store.pathOf(id);
    // The session was deleted meanwhile.
    if (file === null) continue;
    rows.push({ id, path: file, createdAt, kind, operator, rowCount: path.turnCount, closed });
  }
  return [...rows, ...damaged.map(damagedRow)];
}

/** Deletes a session's file, but not its sandbox; false if there was none. `store.undelete` restores it until a purge. */
export async function deleteSession(id: string, options: PersistedOptions = {}): Promise<boolean> {
  checkSessionId(id);
  const directory = directoryOf(options, "deleteSession");
  if (!existsSync(directory)) return false;
  await using store = await openSessionFiles({ directory });
  return await store.delete(id);
}

/**
 * Deletes the sessions that were created before a time, and returns their ids, oldest first. Sessions that are being written
 * or run, and those that cannot be read, are kept. Sessions that had been deleted before that time are purged.
 */
export async function pruneSessions(options: PersistedOptions & { readonly olderThan: Date }): Promise<string[]> {
  checkOptionsOf(options, { directory: true, olderThan: true }, "pruneSessions");
  const { olderThan, ...where } = options;
  if (!(olderThan instanceof Date) || Number.isNaN(olderThan.getTime())) {
    throw new SessionError("INVALID_OPTION", `The option olderThan is ${show(olderThan)}; it must be a date.`);
  }
  const directory = directoryOf(where, "pruneSessions");
  if (!existsSync(directory)) return [];
  const before = olderThan.toISOString();
  await using store = await openSessionFiles({ directory });
  await store.purge(before);
  const pruned: string[] = [];
  for (const { header } of (await listAll(store)).heads) {
    const { id, createdAt } = header;
    if (createdAt >= before || (await store.leaseOf(id)) !== null) continue;
    const path = await store.pathOf(id);
    if (path !== null && (await findWriter(path)) === null && (await store.delete(id))) pruned.push(id);
  }
  return pruned;
}

/** The directory of the options. @throws {SessionError} `INVALID_OPTION` with the name of the call, for invalid options. */
function directoryOf(options: PersistedOptions, call: string): string {
  checkOptionsOf(options, DIRECTORY, call);
  if (options.directory !== undefined) checkPath(options.directory, "directory");
  return options.directory ?? defaultSessionDirectory();
}

async function listAll(store: SessionStore): Promise<{ heads: SessionHead[]; damaged: DamagedSession[] }> {
  const heads: SessionHead[] = [];
  const damaged = new Map<string, DamagedSession>();
  let cursor: string | null = null;
  do {
    const page: SessionPage = await store.list({ limit: PAGE_ITEMS_MAX, ...(cursor === null ? {} : { cursor }) });
    heads.push(...page.items);
    for (const file of page.damaged) damaged.set(file.path, file);
    cursor = page.next;
  } while (cursor !== null);
  heads.sort(({ header: a }, { header: b }) => compare(a.createdAt, b.createdAt) || compare(a.id, b.id));
  return { heads, damaged: [...damaged.values()] };
}

function damagedRow({ id, path, reason }: DamagedSession): PersistedSummary {
  const nothing = { createdAt: "", kind: "unknown", operator: "", rowCount: 0, closed: false } as const;
  return { id: id ?? "", path, ...nothing, damage: reason };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
