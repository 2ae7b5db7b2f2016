import { QUEUED_KEY } from "../../session/log/run-fold.ts";
import type { Entry } from "../../session/log/entry.ts";
import { isErased } from "../../session/log/erased-entry.ts";

/** The target of an erasure, as it is needed to find its words in a session of another user. */
export interface ErasedContent {
  /** The sessions to be removed. */
  readonly sessions: ReadonlyMap<string, unknown>;
  /** Entries of these sessions that may be in others, by id, with the session that each belongs to. */
  readonly owners: ReadonlyMap<string, string>;
  /** Entries that the user authored in sessions of others: a merge copies them without their author. */
  readonly authored: ReadonlySet<string>;
  /** The sessions of others that contain these entries. */
  readonly authoredIn: ReadonlySet<string>;
  readonly forks: "keep" | "erase";
}

/** The result of scanning a session of another user. */
export interface FoundContent {
  /** Entries whose words are to be erased. */
  readonly erase: ReadonlySet<string>;
  /** Entries that are kept because the session was forked from an erased one, grouped by that one. */
  readonly kept: ReadonlyMap<string, readonly string[]>;
  /** How many entries with the words of others come after the first entry to erase. */
  readonly answers: number;
}

const SPOKEN: ReadonlySet<string> = new Set(["message", "custom_message", "compaction", "branch_summary"]);

/** The origin of a session of another user. */
export interface SessionOrigin {
  /** The known ancestors; a session between two of them may be purged. */
  readonly ancestors: ReadonlySet<string>;
  /** How many of its first entries are inherited. */
  readonly inherited: number;
}

/** Scans a session of another user for the words to erase. */
export function findWords(
  entries: readonly Entry[],
  { ancestors, inherited }: SessionOrigin,
  words: ErasedContent,
): FoundContent {
  const erase = new Set<string>();
  const kept = new Map<string, string[]>();
  let answers = 0;
  const sources = new SummarySources(entries);
  const denied = new Set<string>();
  for (const entry of entries) {
    if (isErased(entry)) continue;
    const { sessionId: origin, isCopy } = mergedFrom(entry);
    const owner = words.owners.get(entry.id) ?? (origin !== null && words.sessions.has(origin) ? origin : null);
    const isInherited = owner !== null && (ancestors.has(owner) || (entry.seq < inherited && origin === null));
    // A strategy made it from the whole branch.
    const isSummary = origin !== null && !isCopy && words.authoredIn.has(origin);
    if (isInherited && words.forks === "keep") kept.set(owner, [...(kept.get(owner) ?? []), entry.id]);
    else if (
      owner !== null ||
      words.authored.has(entry.id) ||
      isSummary ||
      isRepetition(entry, erase, denied) ||
      (entry.type === "context_edit" && erase.has(entry.targetId ?? "")) ||
      sources.summarizes(entry, erase)
    ) {
      erase.add(entry.id);
      if (entry.type === "approval" && entry.decision !== undefined) denied.add(entry.callId);
    } else if (erase.size > 0 && SPOKEN.has(entry.type)) answers += 1;
  }
  return { erase, kept, answers };
}

/**
 * Whether a message of a run repeats the words of an erased entry: a delivered queued input, or the result of a denied call with
 * the reason of the denial. Logs of earlier versions do not record the author of such a message. `denied` holds the calls with an
 * erased denial until their result is found, because models reuse call ids.
 */
function isRepetition(entry: Entry, erased: ReadonlySet<string>, denied: Set<string>): boolean {
  if (entry.type !== "message") return false;
  const { message } = entry;
  if (message.role === "tool") return denied.delete(message.toolCallId);
  const queued = message.metadata?.[QUEUED_KEY];
  return typeof queued === "string" && erased.has(queued);
}

/** The session from which an entry was merged, or null, and whether it is one of the entries there. */
function mergedFrom(entry: Entry): { readonly sessionId: string | null; readonly isCopy: boolean } {
  const note =
    entry.type === "message" ? entry.message.metadata : entry.type === "branch_summary" ? entry.details : null;
  const { sessionId, turnId } =
    (note as { mergedFrom?: { sessionId?: unknown; turnId?: unknown } } | null | undefined)?.mergedFrom ?? {};
  return { sessionId: typeof sessionId === "string" ? sessionId : null, isCopy: turnId !== undefined };
}

/** Finds the entries that a summary covers. */
class SummarySources {
  readonly #parents: ReadonlyMap<string, string | null>;

  constructor(entries: readonly Entry[]) {
    this.#parents = new Map(entries.map(({ id, parentId }) => [id, parentId]));
  }

  /** Whether an entry is a summary of at least one of the given entries. */
  summarizes(entry: Entry, others: ReadonlySet<string>): boolean {
    if (others.size === 0) return false;
    if (entry.type === "compaction") return this.#pathTo(entry.parentId).some((id) => others.has(id));
    if (entry.type !== "branch_summary") return false;
    const trunk = new Set(this.#pathTo(entry.parentId));
    return this.#pathTo(entry.fromId).some((id) => others.has(id) && !trunk.has(id));
  }

  #pathTo(id: string | null): string[] {
    const path: string[] = [];
    for (let at = id; at !== null; at = this.#parents.get(at) ?? null) path.push(at);
    return path;
  }
}
