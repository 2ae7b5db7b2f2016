import type { Entry } from "../session/log/entry.ts";
import { EMPTY_PATH, emptyHead, firstSummed, isImported, type SessionHead, stepHead } from "../session/log/fold.ts";
import type { LineageKind } from "../session/log/header.ts";
import { MergedTurns } from "../session/log/merged-turns.ts";
import type { SessionStore } from "../session/store.ts";
import { addUsage, type Usage } from "../session/usage.ts";

/** The sessions that a run makes: what they begin with is a copy of its input, and others paid for that. */
const MADE_BY_RUN: ReadonlySet<LineageKind> = new Set(["op_session_loop", "op_session_compress"]);

/** What was spent. */
export interface OwnSpending {
  readonly usage: Usage;
  readonly cost: number;
}

/**
 * What a session spent itself; null where that is all that its log says was spent.
 *
 * - Of a fork, what was spent since it was forked; of an import that does not count, what was spent since. Of a session that a run made, what its runs spent, each by its own word
 *   where it came to an end, else by what it left: then the copy of its input, with which the log begins, does not count.
 * - A turn that was merged counts in the session where it was said. Of a session that nothing was forked from, nothing can
 *   have been merged; where `forked` says that something was, all that it appended is read.
 * - With `imported: false`, what another program spent does not count, as for budgets.
 * - Reads those entries of such a session that are its own, and nothing of any other.
 */
export async function ownSpending(
  store: SessionStore,
  head: SessionHead,
  { forked = false, imported = true }: { readonly forked?: boolean; readonly imported?: boolean } = {},
): Promise<OwnSpending | null> {
  const { header } = head;
  const taken = Math.max(firstSummed(header), imported ? 0 : (header.inherited?.entries ?? 0));
  const runsOnly = MADE_BY_RUN.has(head.header.lineage.kind);
  if (taken === 0 && !runsOnly && !forked) return null;
  const merged = new MergedTurns(store);
  const tally = new Tally({ ...emptyHead(head.header), version: taken }, runsOnly);
  for await (const entry of store.read(head.header.id, { after: taken - 1 })) {
    if (!imported && isImported(header, entry, entry.seq)) continue;
    if (await merged.countHere(entry)) tally.take(entry);
  }
  // A file that was written row by row says nothing of runs.
  return taken === 0 && runsOnly && !tally.ran ? null : tally;
}

class Tally implements OwnSpending {
  readonly #runsOnly: boolean;
  /** What had been spent when each open run was first started. */
  readonly #open = new Map<string, Usage>();
  #own: SessionHead;
  /** What had been spent at the last claim of the open run. */
  #before: Usage;
  ran = false;

  /** `start` is the head where the entries begin that are taken. */
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

  take(entry: Entry): void {
    if (entry.type === "run") this.#takeRun(entry);
    else if (!this.#runsOnly || this.#open.size > 0)
      this.#own = stepHead(this.#own, entry, EMPTY_PATH, entry.timestamp);
  }

  #takeRun({ runId, phase, usage, sandbox, run }: Extract<Entry, { type: "run" }>): void {
    this.ran = true;
    if (phase === "started") {
      const begins = this.#open.size === 0 || (this.#open.has(runId) && sandbox === undefined);
      if (begins) this.#before = this.usage;
      if (!this.#open.has(runId)) this.#open.set(runId, this.usage);
      return;
    }
    // Before format 3, the end of a run that was recovered says what its last claim spent; since then, what all of them did.
    if (run !== undefined) this.#before = this.#open.get(runId) ?? this.#before;
    this.#open.delete(runId);
    // It knows of summaries and answers that are no rows, too.
    if (this.#runsOnly && usage !== undefined) this.#own = { ...this.#own, usage: addUsage(this.#before, usage) };
  }
}
