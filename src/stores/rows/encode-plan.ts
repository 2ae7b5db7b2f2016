import type { AddedEntry, AppendPlan, StoredEntry } from "../../session/log/append-plan.ts";
import { SessionError } from "../../session/errors.ts";
import { encodeState, type HeadPlace, sameFacts } from "./entry-state.ts";
import type { StoredRow } from "./row-port.ts";

/** What a plan writes, as rows, and where the head is then. */
export interface EncodedPlan {
  readonly rows: readonly StoredRow[];
  readonly place: HeadPlace;
}

type FoundEntries = ReadonlyMap<string, StoredEntry>;

/** How much more than its entries the states of a plan may take: each holds names, reasons and models anew. */
const STATES_CHARACTERS_MAX: number = 64 * 1024 * 1024;

/**
 * The rows of a plan, each with the head after it, so that the log can be forked anywhere.
 *
 * @throws {SessionError} `TOO_LARGE` where a few large facts would be stored anew with too many entries.
 */
export function encodePlan(start: HeadPlace, plan: AppendPlan, found: FoundEntries): EncodedPlan {
  const { added } = plan;
  const own = added.length === 1 ? found : new Map(found);
  const rows: StoredRow[] = [];
  let place = start;
  let excess = 0;
  for (let index = 0; index < added.length; index++) {
    const stored = added[index] as AddedEntry;
    const { entry, head } = stored;
    const next: HeadPlace = {
      head,
      leafSeq: leafAfter(place, stored, own),
      factsSeq: sameFacts(place.head, head) ? place.factsSeq : entry.seq,
    };
    const state = encodeState(place, stored, next);
    const body = JSON.stringify(entry);
    excess += state.length - body.length;
    if (excess > STATES_CHARACTERS_MAX) throw tooMuchState(plan);
    rows.push({ seq: entry.seq, id: entry.id, state, body });
    place = next;
    if (own !== found) (own as Map<string, StoredEntry>).set(entry.id, stored);
  }
  return { rows, place };
}

function tooMuchState({ head, added }: AppendPlan): SessionError {
  return new SessionError(
    "TOO_LARGE",
    `The ${added.length} entries for session ${head.header.id} would be stored with too much of what stood before them; append them in parts.`,
  );
}

function leafAfter(before: HeadPlace, { entry, head }: AddedEntry, found: FoundEntries): number | null {
  if (head.leafId === entry.id) return entry.seq;
  if (entry.type !== "leaf") return before.leafSeq;
  return entry.targetId === null ? null : (found.get(entry.targetId)?.entry.seq ?? before.leafSeq);
}
