import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { ToolCall } from "../message.ts";
import { addCost, addUsage, NO_USAGE, type Usage } from "../usage.ts";
import type { Entry } from "./entry.ts";
import { recordedError, type RunError } from "./run-event.ts";

/** The metadata key of a message, and the custom type, under which a group records its state. */
export const GROUP_KEY = "group";

/** Why a group stopped by itself. */
export type GroupEnd = "complete" | "max-rounds" | "all-passed";

/** One turn of an agent in a group. */
export interface GroupMove {
  readonly agent: string;
  /** A refusal is an answer with the content `{ ok: false, error }`. */
  readonly kind: "spoke" | "passed" | "refused";
}

/** The progress of an agent in the turn that it has not finished, over all claims of the group's run. */
export interface GroupTurn {
  readonly agent: string;
  /** The number of its answers, and how many of these called tools. */
  readonly round: number;
  readonly toolRounds: number;
  /** Null if no answer has a usage or a cost. */
  readonly usage: Usage | null;
  readonly cost: number | null;
  /** Its last answer with calls. */
  readonly answer: { readonly id: string; readonly calls: readonly ToolCall[] } | null;
}

/** The progress of a group in answering a message. */
export interface GroupState {
  /** The id of the message that the group answers. */
  readonly messageId: string;
  readonly maxRounds: number;
  readonly moves: readonly GroupMove[];
  /** The agent that last added a row on the way to its answer. */
  readonly speaker: string | null;
  /** The turn that an agent has not finished; its limits hold over all claims of the group's run. */
  readonly turn: GroupTurn | null;
  /** The agent that failed, and why. */
  readonly failure: { readonly agent: string; readonly error: RunError } | null;
  /** Why the group stopped; null while it goes on, or if it was interrupted. */
  readonly ended: GroupEnd | null;
}

/**
 * The state of a group after one more entry, either of its run's log (`stepRun`) or of a path. Only entries since the
 * latest message to a group matter.
 */
export function stepGroup(group: GroupState | null, entry: Entry): GroupState | null {
  const mark = groupMarkOf(entry);
  if (mark === null) return group;
  if (mark.kind === "message" && typeof mark.maxRounds === "number") return groupOf(entry.id, mark.maxRounds);
  // A group appends under its lease. An entry with a user and without a run was appended by that user.
  if (group === null || (entry.by !== undefined && entry.run === undefined)) return group;
  const message = entry.type === "message" ? entry.message : null;
  const agent = message?.agent ?? mark.agent;
  if (mark.kind === "ended") return { ...group, ended: mark.reason as GroupEnd };
  if (typeof agent !== "string") return group;
  if (mark.kind === "work") return { ...group, speaker: agent, turn: worked(group.turn, agent, entry) };
  if (mark.kind === "failed")
    return { ...group, turn: null, failure: { agent, error: recordedError(message?.metadata?.error) } };
  const kind = mark.kind === "turn" ? "spoke" : mark.kind;
  if (kind !== "spoke" && kind !== "passed" && kind !== "refused") return group;
  return { ...group, turn: null, moves: [...group.moves, { agent, kind }] };
}

/** The turn of an agent after one more of its rows before its answer. */
function worked(before: GroupTurn | null, agent: string, entry: Entry): GroupTurn {
  const none = { agent, round: 0, toolRounds: 0, usage: null, cost: null, answer: null };
  const turn = before?.agent === agent ? before : none;
  if (entry.type !== "message" || entry.message.role !== "assistant") return turn;
  const { usage, cost, toolCalls: calls = [] } = entry.message;
  return {
    agent,
    round: turn.round + 1,
    toolRounds: turn.toolRounds + (calls.length > 0 ? 1 : 0),
    usage: usage === undefined ? turn.usage : addUsage(turn.usage ?? NO_USAGE, usage),
    cost: cost === undefined ? turn.cost : addCost(turn.cost ?? 0, cost),
    answer: calls.length > 0 ? { id: entry.id, calls } : turn.answer,
  };
}

/** The state of a group that just received a message. */
export function groupOf(messageId: string, maxRounds: number): GroupState {
  return { messageId, maxRounds, moves: [], speaker: null, turn: null, failure: null, ended: null };
}

/** The state that a group recorded with an entry; null if it recorded none. Imported entries record nothing. */
export function groupMarkOf(entry: Entry): JsonObject | null {
  if (entry.inherited === true) return null;
  if (entry.type === "message") return objectOf(entry.message.metadata?.[GROUP_KEY]);
  return entry.type === "custom" && entry.customType === GROUP_KEY ? objectOf(entry.data) : null;
}

function objectOf(value: JsonValue | undefined): JsonObject | null {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}
