import { untilAborted } from "../../agent/follow-abort.ts";
import { runErrorOf } from "../../agent/run-error.ts";
import { SessionCapacityError, SessionError, show } from "../../session/errors.ts";
import type { GroupState } from "../../session/log/group-state.ts";
import type { GroupOutcome } from "../../session/log/run-event.ts";
import { type GroupItem, type TurnFilter, visibleTo } from "../agent-view.ts";
import { type AskAgentParts, askAgent } from "../ask-agent.ts";
import type { GroupSeat } from "../group-agent.ts";
import { failureDraft } from "../group-drafts.ts";
import type { GroupView, TurnManager } from "./turn-manager.ts";

/** The parts of a group. */
export interface GroupParts {
  /** The members, in the order in which they joined; agents can join during a run. */
  readonly seats: ReadonlyMap<string, GroupSeat>;
  readonly turnManager: TurnManager;
  readonly isolation: TurnFilter;
}

/** The options of a group's run. */
export interface GroupWork extends Omit<AskAgentParts, "agents" | "messageId" | "visibleNow"> {
  /** The round limit of this run; null to use the one stored with the message. */
  readonly maxRounds: number | null;
}

/**
 * Lets agents take turns until the group has finished. The log is read before each turn, so that a group continues in
 * another process where it stopped in this one.
 */
export async function takeTurns(parts: GroupParts, work: GroupWork): Promise<GroupOutcome> {
  const { log, signal, emit } = work;
  while (true) {
    signal.throwIfAborted();
    await log.refresh();
    const progress = log.progress as GroupState;
    const next = await nextOf(parts, work, progress);
    if (typeof next !== "string") return next;
    const seat = parts.seats.get(next);
    if (seat === undefined) {
      throw new SessionError("INVALID_OPTION", `The turn manager chose ${show(next)}, who is not in the group.`);
    }
    // Without room for its answer, an agent is not asked.
    if (log.room?.left === 0) throw new SessionCapacityError("turns in a session", log.room.limit);
    emit({ type: "agent-selected", agent: next, move: progress.moves.length + 1 });
    const visibleNow = (): readonly GroupItem[] => visibleTo(next, log.items, parts.isolation, parts.turnManager);
    try {
      const asking = { ...work, agents: membersOf(parts.seats), messageId: progress.messageId, visibleNow };
      await askAgent(seat, visibleNow(), asking);
    } catch (thrown) {
      signal.throwIfAborted();
      // The session or the store failed, not the agent.
      if (log.broken !== null) throw log.broken;
      await log.append([failureDraft(next, thrown)]);
      const error = runErrorOf(thrown);
      return { reason: "agent-failed", agent: next, error };
    }
  }
}

/** The view for a turn manager. */
export function viewOf(
  { seats }: GroupParts,
  { log, maxRounds, signal }: Pick<GroupWork, "log" | "maxRounds" | "signal">,
): Required<GroupView> {
  const progress = log.progress as GroupState;
  return {
    turns: log.items.map(({ turn }) => turn),
    agents: membersOf(seats),
    moves: progress.moves.map(({ agent }) => agent),
    maxRounds: maxRounds ?? progress.maxRounds,
    signal,
  };
}

/** The next speaker, or how the group ended. */
async function nextOf(parts: GroupParts, work: GroupWork, { moves }: GroupState): Promise<string | GroupOutcome> {
  const { sessionId, signal } = work;
  const { turnManager } = parts;
  const view = viewOf(parts, work);
  turnManager.recordProgress?.(sessionId, view, false);
  const { agents, maxRounds } = view;
  const latest = moves.slice(-agents.length);
  if (latest.length === agents.length && latest.every(({ kind }) => kind === "passed")) return { reason: "all-passed" };
  // A turn manager may count rounds differently; this limit applies to all of them.
  if (moves.length >= maxRounds * agents.length) return { reason: "max-rounds" };
  const over = await untilAborted(Promise.resolve(turnManager.isComplete(sessionId, view)), signal);
  const next = over ? null : await untilAborted(Promise.resolve(turnManager.selectNext(sessionId, view)), signal);
  return next ?? { reason: "complete" };
}

function membersOf(seats: GroupParts["seats"]): GroupView["agents"] {
  return [...seats.values()].map(({ name, role }) => ({ name, role }));
}
