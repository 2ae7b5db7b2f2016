import { type JsonValue, sameJson } from "../../internal/json.ts";
import { SessionError } from "../errors.ts";
import type { Entry } from "./entry.ts";
import type { Message } from "../message.ts";
import type { SessionStore } from "../store.ts";

/**
 * Tells which turns a sum over sessions counts in the session that stores them. Each pass over a store has one of its
 * own.
 */
export class MergedTurns {
  readonly #store: Pick<SessionStore, "getEntry">;
  readonly #counted = new Set<string>();

  constructor(store: Pick<SessionStore, "getEntry">) {
    this.#store = store;
  }

  /**
   * Whether an entry counts in the session that stores it. A merged turn counts in the session where it was first
   * appended. If that session was deleted, or was never in this store, the turn counts in the first session that stores
   * it.
   */
  async countHere(entry: Entry): Promise<boolean> {
    const origin = originOf(entry);
    if (origin === null) return true;
    if (isSame(await this.#find(origin), entry)) return false;
    const name = JSON.stringify([origin.sessionId, origin.turnId, entry.timestamp]);
    if (this.#counted.has(name)) return false;
    this.#counted.add(name);
    return true;
  }

  async #find({ sessionId, turnId }: Origin): Promise<Entry | null> {
    try {
      return await this.#store.getEntry(sessionId, turnId);
    } catch (error) {
      // Metadata is untrusted: it must not change the sums of other sessions.
      if (error instanceof SessionError && NOT_THERE.has(error.code)) return null;
      throw error;
    }
  }
}

interface Origin {
  readonly sessionId: string;
  readonly turnId: string;
}

const NOT_THERE: ReadonlySet<string> = new Set(["INVALID_ID", "SESSION_NOT_FOUND"]);

/**
 * Whether an entry really is the turn that was merged. Otherwise, metadata that points to any entry would exclude a
 * turn from all sums.
 */
function isSame(found: Entry | null, merged: Entry): boolean {
  if (found?.type !== "message" || merged.type !== "message" || originOf(found) !== null) return false;
  return found.timestamp === merged.timestamp && sameJson(spentOf(found.message), spentOf(merged.message));
}

function spentOf(message: Message): JsonValue {
  const { usage = null, cost = null } = message.role === "assistant" ? message : {};
  return { role: message.role, usage, cost } as unknown as JsonValue;
}

/** Where a merged turn was first appended; null for a turn that was not merged. */
function originOf(entry: Entry): Origin | null {
  if (entry.type !== "message") return null;
  const { metadata } = entry.message;
  if (metadata === undefined || !Object.hasOwn(metadata, "mergedFrom")) return null;
  const { sessionId, turnId } = (metadata["mergedFrom"] ?? {}) as { sessionId?: unknown; turnId?: unknown };
  return typeof sessionId === "string" && typeof turnId === "string" ? { sessionId, turnId } : null;
}
