import { SessionError } from "../../session/errors.ts";
import type { SessionState, SessionTurn } from "../../session/state/state.ts";
import type { MergeContext, MergeOutcome, MergeStrategy, SkippedTurn } from "./merge-strategy.ts";

/**
 * Appends only the named turns with their edits, in the branch's order, and no variables.
 *
 * - An id that the branch does not have is skipped as `unknown`; one that the parent already has as `present`.
 * - A tool call is merged with all of its results or not at all: a part of it is skipped as `torn`.
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
      else if (!known.has(turnId)) skipped.push({ turnId, reason: await skipReason(turnId, context) });
    }
    // Edits of other turns are left out with those.
    const entries = context.newEntries.filter(
      ({ id, type }) => type === "context_edit" || (type === "message" && chosen.has(id) && !torn.has(id)),
    );
    return { entries, skipped };
  }
}

/** A turn from before the fork is in the parent, too. An empty id is never stored, so it is not looked up. */
async function skipReason(turnId: string, context: MergeContext): Promise<SkippedTurn["reason"]> {
  const found = turnId === "" ? null : await context.findInParent(turnId);
  return found?.type === "message" ? "present" : "unknown";
}

/** The selected turns of tool calls of which another part, call or result, is not selected. */
function tornTurns(turns: readonly SessionTurn[], chosen: ReadonlySet<string>): ReadonlySet<string> {
  const torn = new Set<string>();
  for (const exchange of exchangesOf(turns)) {
    const taken = exchange.filter((id) => chosen.has(id));
    if (taken.length < exchange.length) for (const id of taken) torn.add(id);
  }
  return torn;
}

/** Each turn with tool calls, together with the turns of their results. */
function exchangesOf(turns: readonly SessionTurn[]): Iterable<readonly string[]> {
  const exchanges: string[][] = [];
  const open = new Map<string, string[]>();
  for (const turn of turns) {
    if (turn.role === "tool") open.get(turn.toolCallId ?? "")?.push(turn.turnId);
    if (turn.toolCalls === undefined) continue;
    const exchange = [turn.turnId];
    exchanges.push(exchange);
    // Some models reuse call ids in every answer, so an id refers to the latest answer with it.
    for (const { id } of turn.toolCalls) open.set(id, exchange);
  }
  return exchanges;
}
