import { createHash } from "node:crypto";
import type { Entry } from "../../session/log/entry.ts";
import { isErased } from "../../session/log/erased-entry.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { Checkpoint, SessionStore, StoreEraser } from "../../session/store.ts";

/** What was erased. */
export interface Erased {
  readonly userIds?: readonly string[];
  readonly sessionIds?: readonly string[];
  readonly entryIds?: readonly string[];
}

/** Says that something was erased from this store at all, so that most copies have nothing else to look up. */
const ANY = "erased";
const KEYS_AT_ONCE = 500;

/** Notes what was erased, and when. It keeps ids, and of users only what tells whether a name is theirs. */
export async function markErased(eraser: StoreEraser, at: string, erased: Erased): Promise<void> {
  await eraser.writeMarks(new Map([ANY, ...keysOf(erased)].map((key) => [key, at])));
}

/**
 * Refuses a session that was erased from a store, or is of a user who was erased after it was made.
 *
 * @throws {SessionError} `ERASED`.
 */
export async function refuseErased(store: SessionStore, { id, userId, createdAt }: SessionHeader): Promise<void> {
  const marks = await marksOf(store, { sessionIds: [id], userIds: userId === null ? [] : [userId] });
  const [session = "", user = ""] = keysOf({ sessionIds: [id], userIds: [userId ?? ""] });
  // One that was made later under the same id is another.
  if (createdAt <= (marks.get(session) ?? ""))
    throw new SessionError("ERASED", `Session ${id} was erased from this store, and cannot be brought back.`);
  if (createdAt <= (marks.get(user) ?? ""))
    throw new SessionError(
      "ERASED",
      `Session ${id} is of a user who was erased from this store after it was made, and cannot be brought back.`,
    );
}

/**
 * Which of some entries were erased from a store, or are words of a user who was erased after they were said. What is left of
 * a user in the store that they come from, although the user was erased there too, was left on purpose and is not among them.
 */
export function erasedAmong(
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

/** Which of some checkpoints were made by a user who was erased from a store after that. */
export function erasedCheckpointsAmong(
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
    const left = from === undefined ? new Map<string, string>() : await marksOf(from, { userIds: users });
    for (const { id, by, timestamp } of part) {
      const [user = "", own = ""] = keysOf({ userIds: [by ?? ""], entryIds: [id] });
      const isTheirs = timestamp <= (marks.get(user) ?? "") && timestamp > (left.get(user) ?? "");
      if (marks.has(own) || isTheirs) found.add(id);
    }
  }
  return found;
}

/** Notes in a store what was erased from another, where it can, so that a copy of that one knows it too. */
export async function carryErased(from: SessionStore, to: SessionStore): Promise<void> {
  const eraser = eraserOf(to);
  if (eraser === null || !(await hasErased(from))) return;
  const marks = [...(await from.eraser.readMarks())].filter(([key]) => key === ANY || key.startsWith(`${ANY}/`));
  for (let first = 0; first < marks.length; first += KEYS_AT_ONCE) {
    const part = marks.slice(first, first + KEYS_AT_ONCE);
    const there = await eraser.readMarks(part.map(([key]) => key));
    const later = part.filter(([key, at]) => at > (there.get(key) ?? ""));
    if (later.length > 0) await eraser.writeMarks(new Map(later));
  }
}

/** Whether anything was ever erased from a store; from one that cannot erase, nothing was. */
export async function hasErased(store: SessionStore): Promise<boolean> {
  const marks = await eraserOf(store)?.readMarks([ANY]);
  return marks !== undefined && marks.size > 0;
}

/** What a store erases with; null for one that cannot. */
export function eraserOf(store: SessionStore): StoreEraser | null {
  try {
    return store.eraser;
  } catch (error) {
    if (error instanceof SessionError && error.code === "NOT_SUPPORTED") return null;
    throw error;
  }
}

async function marksOf(store: SessionStore, erased: Erased): Promise<ReadonlyMap<string, string>> {
  return (await hasErased(store)) ? store.eraser.readMarks(keysOf(erased)) : new Map();
}

function keysOf({ userIds = [], sessionIds = [], entryIds = [] }: Erased): string[] {
  return [
    ...sessionIds.map((id) => `${ANY}/session/${id}`),
    ...userIds.map((id) => `${ANY}/user/${createHash("sha256").update(id).digest("hex")}`),
    ...entryIds.map((id) => `${ANY}/entry/${id}`),
  ];
}
