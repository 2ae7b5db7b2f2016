import type { Entry } from "../session/log/entry.ts";
import { EMPTY_PATH, emptyHead, firstSummed, isImported, type SessionHead, stepHead } from "../session/log/fold.ts";
import type { LineageKind } from "../session/log/header.ts";
import { isPlaceOnly } from "../session/log/open-runs.ts";
import { MergedTurns } from "../session/log/merged-turns.ts";
import { entriesBetween } from "./path-reader.ts";
import type { SessionStore } from "../session/store.ts";
import { addUsage, type Usage } from "../session/usage.ts";

/** Kinds of sessions that a run creates. They begin with a copy of the run's input, which does not count as their spending. */
const MADE_BY_RUN: ReadonlySet<LineageKind> = new Set(["op_session_loop", "op_session_compress"]);

/** Usage and cost. */
export interface OwnSpending {
  readonly usage: Usage;
  readonly cost: number;
}

/** Options of `ownSpending`. */
export interface SpendingOptions {
  readonly forked?: boolean;
  readonly imported?: boolean;
  /** Entries that were read already, the latest first: they are not read again if they are all that count. */
  readonly passed?: readonly Entry[];
}

/**
 * Computes the usage and cost of a session itself. Null if that is simply the sum of its whole log.
 *
 * - For a fork, only entries after the fork point count. For an import that does not count, only entries after the import.
 * - For a session that a run created, only its runs count, without the copy of the input at the log's beginning. A finished
 *   run counts with the usage that it has recorded, an unfinished one with the usage of its entries.
 * - A merged turn counts in the session in which it was first appended. Only sessions with forks can have merged turns: with
 *   `forked`, all entries of the session are read for that.
 * - With `imported: false`, the spending of another program does not count, as for budgets.
 * - Reads only the session's own entries.
 */
export async function ownSpending(
  store: SessionStore,
  head: SessionHead,
  { forked = false, imported = true, passed = [] }: SpendingOptions = {},
): Promise<OwnSpending | null> {
  const { header } = head;
  const start = Math.max(firstSummed(header), imported ? 0 : (header.inherited?.entries ?? 0));
  const runsOnly = MADE_BY_RUN.has(head.header.lineage.kind);
  if (start === 0 && !runsOnly && !forked) return null;
  const merged = new MergedTurns(store);
  const tally = new Tally({ ...emptyHead(head.header), version: start }, runsOnly);
  const known = passed.length === 0 ? null : entriesBetween(passed, start, head.version);
  for await (const entry of known ?? store.read(head.header.id, { after: start - 1 })) {
    if (!imported && isImported(header, entry, entry.seq)) continue;
    if (await merged.countHere(entry)) tally.add(entry);
  }
  // A file that was written row by row has no run entries.
  return start === 0 && runsOnly && !tally.hasRuns ? null : tally;
}

class Tally implements OwnSpending {
  readonly #runsOnly: boolean;
  /** The spending at the first start of each open run. */
  readonly #open = new Map<string, Usage>();
  #own: SessionHead;
  /** The spending at the last claim of the open run. */
  #before: Usage;
  hasRuns = false;

  /** `start` is the head before the first entry that counts. */
  constructor(start: SessionHead, runsOnly: boolean) {
    this.#own = start;
    this.#before = this.#own.usage;
    this.#runsOnly = runsOnly;
  }

  get usage(): Usage {
    return this.#own.usage;
  }

  get cost(): number {
    return this.#own.cost;
  }

  add(entry: Entry): void {
    if (entry.type === "run") this.#addRun(entry);
    else if (!this.#runsOnly || this.#open.size > 0)
      this.#own = stepHead(this.#own, entry, EMPTY_PATH, entry.timestamp);
  }

  #addRun(entry: Extract<Entry, { type: "run" }>): void {
    const { runId, phase, usage, run } = entry;
    this.hasRuns = true;
    if (phase === "started") {
      const begins = this.#open.size === 0 || (this.#open.has(runId) && !isPlaceOnly(entry));
      if (begins) this.#before = this.usage;
      if (!this.#open.has(runId)) this.#open.set(runId, this.usage);
      return;
    }
    // Before format 3, the end of a run that was recovered says what its last claim spent; since then, what all of them did.
    if (run !== undefined) this.#before = this.#open.get(runId) ?? this.#before;
    this.#open.delete(runId);
    // The recorded usage includes summaries and answers that are not rows.
    if (this.#runsOnly && usage !== undefined) this.#own = { ...this.#own, usage: addUsage(this.#before, usage) };
  }
}
