import { type Entry, SessionError, type SessionHead, type SessionStore } from "../../index.ts";
import { show } from "../../session/errors.ts";
import { frameworkOf } from "../../session/framework.ts";
import { listPages } from "../../stores/complete/list-pages.ts";
import type { CommandArgument } from "../command.ts";
import { printable } from "../terminal.ts";

const CANDIDATES_MAX = 5;

/** How a session is named on the command line. */
export const SESSION_ARGUMENT: CommandArgument = {
  name: "session",
  what: 'the session: its id, a unique prefix or suffix of it, or "last" for the session with the latest message',
};

/** How an entry is named on the command line. */
export const ENTRY_NAMES = 'its number in skein tree, its id, or "leaf"';

/** The title of a session in a listing: its name or first words; for a fork, also the name of its branch. */
export function titleOf({ header, name, firstMessage }: SessionHead): string {
  const kept = frameworkOf(header);
  const began = [
    ...(kept === null ? [] : [`${kept.framework} ${kept.thread}`]),
    ...(firstMessage === null ? [] : [firstMessage]),
  ];
  const title = printable(name ?? began.join(": "), 60);
  const branch = header.forkedFrom?.branchName;
  return branch === undefined ? title : `${title} / ${printable(branch, 20)}`;
}

/**
 * Finds the session that was named: by its id, by a prefix or suffix that no other session has, or by "last".
 *
 * A whole id costs one lookup; a part of an id is searched among all sessions. Ids begin with the time, so those of one
 * day differ at the end; `…4b446e` is matched as a suffix only.
 *
 * @throws {SessionError} `SESSION_NOT_FOUND`, or `INVALID_OPTION` with the candidates if several match.
 */
export async function findSession(store: SessionStore, reference: string): Promise<SessionHead> {
  const exact = await headIfAny(store, reference);
  if (exact !== null) return exact;
  if (reference === "last") {
    const [latest] = (await store.list({ limit: 1 })).items;
    if (latest !== undefined) return latest;
    throw new SessionError("SESSION_NOT_FOUND", "There is no session yet.");
  }
  return onlyOne(reference, await candidatesOf(store, reference, false), "skein list shows the sessions");
}

/** Finds the deleted session that was named, by its id or by a unique part of it. */
export async function findDeletedSession(store: SessionStore, reference: string): Promise<SessionHead> {
  const found = await candidatesOf(store, reference, true);
  return onlyOne(reference, found, "skein list --deleted shows the deleted sessions");
}

/** Finds the entry that was named as `ENTRY_NAMES` says. @throws {SessionError} `UNKNOWN_ENTRY` if there is none. */
export async function findEntry(store: SessionStore, head: SessionHead, reference: string): Promise<Entry> {
  const entry = await entryIfAny(store, head, reference);
  if (entry !== null) return entry;
  throw new SessionError(
    "UNKNOWN_ENTRY",
    `There is no entry ${show(reference)} in session ${head.header.id}; skein tree shows the numbers of its entries.`,
  );
}

/** As `findEntry`, but null if there is no such entry. */
export async function entryIfAny(store: SessionStore, head: SessionHead, reference: string): Promise<Entry | null> {
  const { id } = head.header;
  const named = await store.getEntry(id, reference);
  if (named !== null) return named;
  if (reference === "leaf" && head.leafId !== null) return store.getEntry(id, head.leafId);
  if (!/^\d{1,15}$/.test(reference)) return null;
  const seq = Number(reference);
  for await (const entry of store.read(id, { after: seq - 1, limit: 1 })) if (entry.seq === seq) return entry;
  return null;
}

async function headIfAny(store: SessionStore, reference: string): Promise<SessionHead | null> {
  try {
    return await store.head(reference);
  } catch (error) {
    // A part of an id may not be a valid id.
    if (error instanceof SessionError && error.code === "INVALID_ID") return null;
    throw error;
  }
}

/** The session with that id alone, or all whose ids have that prefix or suffix. */
async function candidatesOf(store: SessionStore, reference: string, deleted: boolean): Promise<SessionHead[]> {
  const [, end] = /^(?:…|\.\.\.)(.+)$/s.exec(reference) ?? [];
  const fits = (id: string): boolean =>
    end === undefined ? id.startsWith(reference) || id.endsWith(reference) : id.endsWith(end);
  const found: SessionHead[] = [];
  for await (const { items } of listPages(store, { deleted })) {
    for (const head of items) {
      if (head.header.id === reference) return [head];
      if (fits(head.header.id)) found.push(head);
    }
  }
  return found;
}

function onlyOne(reference: string, [first, ...others]: readonly SessionHead[], advice: string): SessionHead {
  if (first === undefined) {
    throw new SessionError("SESSION_NOT_FOUND", `There is no session ${show(reference)}; ${advice}.`);
  }
  if (others.length === 0) return first;
  const named = [first, ...others].slice(0, CANDIDATES_MAX).map(({ header }) => header.id);
  const more = others.length + 1 - named.length;
  const rest = more > 0 ? ` and ${more} more` : "";
  throw new SessionError(
    "INVALID_OPTION",
    `${show(reference)} matches ${named.join(", ")}${rest}; write more of the id.`,
  );
}
