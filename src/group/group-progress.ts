import type { JsonObject, JsonValue } from "../internal/json.ts";
import type { Entry } from "../session/log/entry.ts";

/** Under this key of a message's metadata, and as this custom type, a group keeps its marks. */
export const GROUP_KEY = "group";

/** Why a group stopped by itself. */
export type GroupEnd = "complete" | "max-rounds" | "all-passed";

/** One agent's go. */
export interface GroupMove {
  readonly agent: string;
  /** A refusal is an answer of the form `{ ok: false, error }`. */
  readonly kind: "spoke" | "passed" | "refused";
}

/** How far a group has come in answering a message. */
export interface GroupProgress {
  /** The entry of the message that the group answers. */
  readonly messageId: string;
  readonly maxRounds: number;
  readonly moves: readonly GroupMove[];
  /** Why it stopped; null while it goes on, or was interrupted. */
  readonly ended: GroupEnd | null;
}

/** The progress after one more entry of the path. Only the entries since the latest message of a group matter. */
export function stepProgress(progress: GroupProgress | null, entry: Entry): GroupProgress | null {
  const mark = groupMarkOf(entry);
  if (mark?.kind === "message" && typeof mark.maxRounds === "number") {
    return { messageId: entry.id, maxRounds: mark.maxRounds, moves: [], ended: null };
  }
  // What a group does about a message it writes under its lease, and that carries no user's name.
  if (progress === null || mark === null || entry.by !== undefined) return progress;
  if (mark.kind === "ended") return { ...progress, ended: mark.reason as GroupEnd };
  const kind = mark.kind === "turn" ? "spoke" : mark.kind;
  if (kind !== "spoke" && kind !== "passed" && kind !== "refused") return progress;
  const agent = entry.type === "message" ? entry.message.agent : mark.agent;
  if (typeof agent !== "string") return progress;
  return { ...progress, moves: [...progress.moves, { agent, kind }] };
}

/** The mark of a group on an entry; null where there is none. One that came from elsewhere is words. */
export function groupMarkOf(entry: Entry): JsonObject | null {
  if (entry.inherited === true) return null;
  if (entry.type === "message") return objectOf(entry.message.metadata?.[GROUP_KEY]);
  return entry.type === "custom" && entry.customType === GROUP_KEY ? objectOf(entry.data) : null;
}

function objectOf(value: JsonValue | undefined): JsonObject | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}
