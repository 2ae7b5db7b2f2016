import { createHash } from "node:crypto";
import type { Entry } from "../session/log/entry.ts";
import { isErased } from "../session/log/erased-entry.ts";
import { SessionError } from "../session/errors.ts";
import type { SessionHeader } from "../session/log/header.ts";
import type { Checkpoint, SessionStore, StoreEraser } from "../session/store.ts";

/** The ids of erased users, sessions and entries. */
export interface Erased {
  readonly userIds?: readonly string[];
  readonly sessionIds?: readonly string[];
  readonly entryIds?: readonly string[];
}

/** The mark of a store from which anything was erased. Without it, a copy need not look up any other mark. */
const ANY_ERASED = "erased";
const KEYS_AT_ONCE = 500;

/** Writes tombstones: marks with the ids of what was erased, and the time. User ids are stored as SHA-256 hashes only. */
export async function writeTombstones(eraser: StoreEraser, at: string, erased: Erased): Promise<void> {
  await eraser.writeMarks(new Map([ANY_ERASED, ...keysOf(erased)].map((key) => [key, at])));
}

/**
 * Refuses a session that was erased from a store, or whose user was erased after the session was created.
 *
 * @throws {SessionError} `ERASED`.
 */
export async function refuseErased(store: SessionStore, { id, userId, createdAt }: SessionHeader): Promise<void> {
  const marks = await marksOf(store, { sessionIds: [id], userIds: userId === null ? [] : [userId] });
  const [session = "", user = ""] = keysOf({ sessionIds: [id], userIds: [userId ?? ""] });
  // A session that was created after the erasure under the same id is another one.
  if (createdAt <= (marks.get(session) ?? ""))
    throw new SessionError("ERASED", `Session ${id} was erased from this store and cannot be added again.`);
  if (createdAt <= (marks.get(user) ?? ""))
    throw new SessionError(
      "ERASED",
      `Session ${id} belongs to a user who was erased from this store after it was created, and cannot be added again.`,
    );
}

/**
 * Finds the entries that were erased from a store, or that a user wrote who was erased from it afterwards. If that user was
 * erased from the source store `from` too, the user's entries that are left there were kept on purpose, and are not found.
 */
export function findErased(
  store: SessionStore,
  entries: readonly Entry[],
  from?: SessionStore,
): Promise<ReadonlySet<string>> {
  return erasedSince(
    store,
    entries.filter((entry) => !isErased(entry)),
    from,
  );
}

/** Finds the checkpoints whose user was erased from a store after they were made. */
export function findErasedCheckpoints(
  store: SessionStore,
  checkpoints: readonly Checkpoint[],
  from?: SessionStore,
): Promise<ReadonlySet<string>> {
  const made = checkpoints.flatMap(({ id, by, createdAt }) =>
    by === undefined ? [] : [{ id, by, timestamp: createdAt }],
  );
  return erasedSince(store, made, from);
}

async function erasedSince(
  store: SessionStore,
  stamps: readonly Pick<Entry, "id" | "by" | "timestamp">[],
  from?: SessionStore,
): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (let first = 0; first < stamps.length; first += KEYS_AT_ONCE) {
    const part = stamps.slice(first, first + KEYS_AT_ONCE);
    const users = [...new Set(part.flatMap(({ by }) => by ?? []))];
    const marks = await marksOf(store, { entryIds: part.map(({ id }) => id), userIds: users });
    if (marks.size === 0) continue;
    const sourceMarks = from === undefined ? new Map<string, string>() : await marksOf(from, { userIds: users });
    for (const { id, by, timestamp } of part) {
      const [user = "", own = ""] = keysOf({ userIds: [by ?? ""], entryIds: [id] });
      const isByErasedUser = timestamp <= (marks.get(user) ?? "") && timestamp > (sourceMarks.get(user) ?? "");
      if (marks.has(own) || isByErasedUser) found.add(id);
    }
  }
  return found;
}

/** Copies the tombstones of a store to another one, if that one can hold them. */
export async function copyTombstones(from: SessionStore, to: SessionStore): Promise<void> {
  const eraser = eraserOf(to);
  if (eraser === null || !(await hasTombstones(from))) return;
  const marks = [...(await from.eraser.readMarks())].filter(
    ([key]) => key === ANY_ERASED || key.startsWith(`${ANY_ERASED}/`),
  );
  for (let first = 0; first < marks.length; first += KEYS_AT_ONCE) {
    const part = marks.slice(first, first + KEYS_AT_ONCE);
    const there = await eraser.readMarks(part.map(([key]) => key));
    const later = part.filter(([key, at]) => at > (there.get(key) ?? ""));
    if (later.length > 0) await eraser.writeMarks(new Map(later));
  }
}

/** Whether anything was ever erased from a store; false for a store that cannot erase. */
export async function hasTombstones(store: SessionStore): Promise<boolean> {
  const marks = await eraserOf(store)?.readMarks([ANY_ERASED]);
  return marks !== undefined && marks.size > 0;
}

/** The eraser of a store; null for a store that cannot erase. */
export function eraserOf(store: SessionStore): StoreEraser | null {
  try {
    return store.eraser;
  } catch (error) {
    if (error instanceof SessionError && error.code === "NOT_SUPPORTED") return null;
    throw error;
  }
}

async function marksOf(store: SessionStore, erased: Erased): Promise<ReadonlyMap<string, string>> {
  return (await hasTombstones(store)) ? store.eraser.readMarks(keysOf(erased)) : new Map();
}

function keysOf({ userIds = [], sessionIds = [], entryIds = [] }: Erased): string[] {
  return [
    ...sessionIds.map((id) => `${ANY_ERASED}/session/${id}`),
    ...userIds.map((id) => `${ANY_ERASED}/user/${createHash("sha256").update(id).digest("hex")}`),
    ...entryIds.map((id) => `${ANY_ERASED}/entry/${id}`),
  ];
}
