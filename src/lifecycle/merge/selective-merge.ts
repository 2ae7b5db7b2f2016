import { SessionError } from "../../session/errors.ts";
import type { SessionState, SessionTurn } from "../../session/state/state.ts";
import type { MergeContext, MergeOutcome, MergeStrategy, SkippedTurn } from "./merge-strategy.ts";

/**
 * Appends just the turns that are named, in the branch's order, and no variables.
 *
 * - An id that the branch does not have is skipped as `unknown`; one that the parent has already is `present`.
 * - A tool's call goes with all its results or not at all: half of one is skipped as `torn`.
 */
export class SelectiveMerge implements MergeStrategy {
  readonly name = "selective";
  readonly turns = false;
  readonly turnIds: readonly string[];

  constructor(turnIds: readonly string[]) {
    if (!Array.isArray(turnIds) || !turnIds.every((id) => typeof id === "string")) {
      throw new SessionError("INVALID_OPTION", "A selective merge needs the list of the turns' ids.");
    }
    this.turnIds = Object.freeze([...new Set(turnIds)]);
  }

  async merge(_parent: SessionState, _branch: SessionState, context: MergeContext): Promise<MergeOutcome> {
    const { newTurns } = context;
    const chosen = new Set(this.turnIds);
    const torn = tornTurns(newTurns, chosen);
    const known = new Set(newTurns.map(({ turnId }) => turnId));
    const skipped: SkippedTurn[] = [];
    for (const turnId of this.turnIds) {
      if (torn.has(turnId)) skipped.push({ turnId, reason: "torn" });
      else if (!known.has(turnId)) skipped.push({ turnId, reason: await whyNot(turnId, context) });
    }
    return { turns: newTurns.filter(({ turnId }) => chosen.has(turnId) && !torn.has(turnId)), skipped };
  }
}

/** A turn from before the fork is in both; the store takes no id that no entry can have. */
async function whyNot(turnId: string, context: MergeContext): Promise<SkippedTurn["reason"]> {
  const found = turnId === "" ? null : await context.findInParent(turnId);
  return found?.type === "message" ? "present" : "unknown";
}

/** The chosen turns that belong to a call whose answer, or to an answer whose call, was not chosen. */
function tornTurns(turns: readonly SessionTurn[], chosen: ReadonlySet<string>): ReadonlySet<string> {
  const torn = new Set<string>();
  for (const exchange of exchangesOf(turns)) {
    const taken = exchange.filter((id) => chosen.has(id));
    if (taken.length < exchange.length) for (const id of taken) torn.add(id);
  }
  return torn;
}

/** Each turn that calls tools, with the turns that answer it. */
function exchangesOf(turns: readonly SessionTurn[]): Iterable<readonly string[]> {
  const exchanges: string[][] = [];
  const open = new Map<string, string[]>();
  for (const turn of turns) {
    if (turn.role === "tool") open.get(turn.toolCallId ?? "")?.push(turn.turnId);
    if (turn.toolCalls === undefined) continue;
    const exchange = [turn.turnId];
    exchanges.push(exchange);
    // Some models count their calls anew in every answer, so an id means the latest answer's calls.
    for (const { id } of turn.toolCalls) open.set(id, exchange);
  }
  return exchanges;
}
