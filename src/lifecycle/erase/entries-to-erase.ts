import { QUEUED_KEY } from "../../session/log/run-fold.ts";
import type { Entry } from "../../session/log/entry.ts";
import { isErased } from "../../session/log/erased-entry.ts";

/** What is known of who or what is erased, when a session of someone else is looked through. */
export interface ErasedWords {
  /** The sessions that go. */
  readonly sessions: ReadonlyMap<string, unknown>;
  /** Entries of theirs that others may have, and whose each is. */
  readonly owners: ReadonlyMap<string, string>;
  /** Entries that the user caused in sessions of others: a merge takes them on without saying whose they are. */
  readonly authored: ReadonlySet<string>;
  /** The sessions of others that these are in. */
  readonly heard: ReadonlySet<string>;
  readonly forks: "keep" | "erase";
}

/** What a look through a session of someone else has found. */
export interface FoundWords {
  /** Entries whose words are to go. */
  readonly erase: ReadonlySet<string>;
  /** Entries that stay as the session was forked from theirs, by the session that they were said in. */
  readonly kept: ReadonlyMap<string, readonly string[]>;
  /** How many entries come after the first of `erase` and say something in words of others. */
  readonly answers: number;
}

const SPOKEN: ReadonlySet<string> = new Set(["message", "custom_message", "compaction", "branch_summary"]);

/** What a session of someone else was made from. */
export interface SessionOrigin {
  /** The sessions, as far as they are known: one in between may be purged. */
  readonly ancestors: ReadonlySet<string>;
  /** How many of its first entries are theirs. */
  readonly inherited: number;
}

/** Looks through a session of someone else. */
export function findWords(
  entries: readonly Entry[],
  { ancestors, inherited }: SessionOrigin,
  words: ErasedWords,
): FoundWords {
  const erase = new Set<string>();
  const kept = new Map<string, string[]>();
  let answers = 0;
  const tree = new Tree(entries);
  const denied = new Set<string>();
  for (const entry of entries) {
    if (isErased(entry)) continue;
    const origin = mergedFrom(entry);
    const owner = words.owners.get(entry.id) ?? (origin !== null && words.sessions.has(origin) ? origin : null);
    const isInherited = owner !== null && (ancestors.has(owner) || (entry.seq < inherited && origin === null));
    const isSummary = entry.type === "branch_summary" && origin !== null && words.heard.has(origin);
    if (isInherited && words.forks === "keep") kept.set(owner, [...(kept.get(owner) ?? []), entry.id]);
    else if (
      owner !== null ||
      words.authored.has(entry.id) ||
      isSummary ||
      isRepetition(entry, erase, denied) ||
      tree.tells(entry, erase)
    ) {
      erase.add(entry.id);
      if (entry.type === "approval" && entry.decision !== undefined) denied.add(entry.callId);
    } else if (erase.size > 0 && SPOKEN.has(entry.type)) answers += 1;
  }
  return { erase, kept, answers };
}

/**
 * Whether a message of a run repeats words of an erased entry: a queued input that was delivered, or the result of a call
 * with the reason of its denial. Logs of earlier versions do not say who caused such a message. `denied` holds the calls
 * whose denial is erased until their result comes, as models use ids of calls again.
 */
function isRepetition(entry: Entry, erased: ReadonlySet<string>, denied: Set<string>): boolean {
  if (entry.type !== "message") return false;
  const { message } = entry;
  if (message.role === "tool") return denied.delete(message.toolCallId);
  const queued = message.metadata?.[QUEUED_KEY];
  return typeof queued === "string" && erased.has(queued);
}

/** The session that a merge has taken an entry from. */
function mergedFrom(entry: Entry): string | null {
  const note =
    entry.type === "message" ? entry.message.metadata : entry.type === "branch_summary" ? entry.details : null;
  const origin = (note as { mergedFrom?: { sessionId?: unknown } } | null | undefined)?.mergedFrom?.sessionId;
  return typeof origin === "string" ? origin : null;
}

/** Knows what a summary was made from. */
class Tree {
  readonly #parents: ReadonlyMap<string, string | null>;

  constructor(entries: readonly Entry[]) {
    this.#parents = new Map(entries.map(({ id, parentId }) => [id, parentId]));
  }

  /** Whether an entry sums up one of some others. */
  tells(entry: Entry, others: ReadonlySet<string>): boolean {
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
