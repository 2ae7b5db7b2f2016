import { SessionError, type SessionHead, type SessionStore } from "../../index.ts";
import { show, UnknownEntryError } from "../../session/errors.ts";
import { listPages } from "../../stores/complete/list-pages.ts";
import type { CommandArgument } from "../command.ts";

const CANDIDATES_MAX = 5;

/** How a session is named on the command line. */
export const SESSION_ARGUMENT: CommandArgument = {
  name: "session",
  what: 'the session: its id, a beginning of it that no other has, or "last" for the one with the latest message',
};

/**
 * The session that was named: by its id, by a beginning of it that no other session has, or by "last".
 *
 * A whole id costs one look at the store; a beginning is looked for among all sessions.
 *
 * @throws {SessionError} `SESSION_NOT_FOUND`, or `INVALID_OPTION` that names the candidates when there are several.
 */
export async function findSession(store: SessionStore, reference: string): Promise<SessionHead> {
  const exact = await headIfAny(store, reference);
  if (exact !== null) return exact;
  if (reference === "last") {
    const [latest] = (await store.list({ limit: 1 })).items;
    if (latest !== undefined) return latest;
    throw new SessionError("SESSION_NOT_FOUND", "There is no session yet, so that none is the last one.");
  }
  return onlyOne(reference, await candidatesOf(store, reference, false), "skein list shows those there are");
}

/** The deleted session that was named, by its id or by a beginning of it that no other deleted one has. */
export async function findDeletedSession(store: SessionStore, reference: string): Promise<SessionHead> {
  const found = await candidatesOf(store, reference, true);
  return onlyOne(reference, found, "skein list --deleted shows those that can be brought back");
}

/** The entry that was named: by its id, or by "leaf". @throws {UnknownEntryError} when the session has no such entry. */
export async function findEntryId(store: SessionStore, head: SessionHead, reference: string): Promise<string> {
  const { id } = head.header;
  if ((await store.getEntry(id, reference)) !== null) return reference;
  if (reference === "leaf" && head.leafId !== null) return head.leafId;
  throw new UnknownEntryError(id, reference);
}

async function headIfAny(store: SessionStore, reference: string): Promise<SessionHead | null> {
  try {
    return await store.head(reference);
  } catch (error) {
    // The beginning of an id need not be one.
    if (error instanceof SessionError && error.code === "INVALID_ID") return null;
    throw error;
  }
}

/** The session of that id alone, or the first few whose ids begin so. */
async function candidatesOf(store: SessionStore, reference: string, deleted: boolean): Promise<SessionHead[]> {
  const found: SessionHead[] = [];
  for await (const { items } of listPages(store, { deleted })) {
    for (const head of items) {
      if (head.header.id === reference) return [head];
      if (head.header.id.startsWith(reference)) found.push(head);
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
    `${show(reference)} may be ${named.join(", ")}${rest}; write more of the id.`,
  );
}
