import type { WireRunEvent } from "skein/client";
import type { Approval } from "../../../src/session/log/run-event.ts";

/** One agent's move in a run of a group. */
export interface GroupMove {
  readonly move: number;
  readonly agent: string;
  readonly status: "speaking" | "spoke" | "passed" | "refused" | "failed" | "stopped";
  readonly text: string;
  /** Where the text of the current model call begins; the text after it is discarded when the model is retried. */
  readonly roundStart: number;
  /** The tool that is running; null without one. */
  readonly tool: string | null;
}

/** A call that waits for approval. */
export interface WaitingCall {
  readonly agent: string;
  readonly approval: Approval;
}

/** The state of a group's run, reduced from its events. */
export interface GroupRunState {
  readonly moves: readonly GroupMove[];
  readonly waiting: readonly WaitingCall[];
  /** How the run ended; null while it is active. */
  readonly outcome: string | null;
  readonly failed: boolean;
}

/** The initial state. */
export const NO_EVENTS: GroupRunState = { moves: [], waiting: [], outcome: null, failed: false };

/** The maximum number of moves; earlier ones are in the session by then. */
const MOVES_MAX = 40;
const CHARACTERS_MAX = 20_000;

const ENDS: Readonly<Record<string, string>> = {
  complete: "The group is done.",
  "max-rounds": "The group is done: it reached its last round.",
  "all-passed": "The group is done: all agents passed.",
};

/** The reducer: the state after one more event. */
export function stepGroupRun(state: GroupRunState, event: WireRunEvent): GroupRunState {
  switch (event.type) {
    case "agent-selected": {
      const { agent, move } = event;
      const next: GroupMove = { move, agent, status: "speaking", text: "", roundStart: 0, tool: null };
      return { ...state, moves: [...state.moves, next].slice(-MOVES_MAX) };
    }
    case "round-started":
      return change(state, event, (move) => ({ ...move, roundStart: move.text.length }));
    case "text-delta":
      return change(state, event, (move) => ({ ...move, text: (move.text + event.text).slice(0, CHARACTERS_MAX) }));
    case "model-retry":
      return change(state, event, (move) => ({ ...move, text: move.text.slice(0, move.roundStart) }));
    case "tool-started":
      return decided(
        change(state, event, (move) => ({ ...move, tool: event.name })),
        event.callId,
      );
    case "tool-finished":
      return decided(
        change(state, event, (move) => ({ ...move, tool: null })),
        event.callId,
      );
    case "approval-required": {
      const call = { agent: agentOf(event) ?? "", approval: event.approval };
      return { ...state, waiting: [...state.waiting, call] };
    }
    case "approval-settled":
      return { ...state, waiting: state.waiting.filter(({ approval }) => approval.question !== event.question) };
    case "agent-finished":
      return change(state, event, (move) => ({
        ...move,
        status: event.kind,
        tool: null,
        text: event.text === "" ? move.text : event.text.slice(0, CHARACTERS_MAX),
      }));
    case "agent-failed":
      return change(state, event, (move) => ({ ...move, status: "failed", tool: null, text: event.error.message }));
    case "group-finished": {
      const { outcome } = event;
      const failed = outcome.reason === "agent-failed";
      const said = failed ? `${outcome.agent} failed, and the group stopped.` : ENDS[outcome.reason];
      return ended(state, said ?? "The group is done.", failed);
    }
    case "group-failed":
      return ended(state, event.error.message, true);
    default:
      return state;
  }
}

function change(state: GroupRunState, event: object, step: (move: GroupMove) => GroupMove): GroupRunState {
  const agent = agentOf(event);
  const index = state.moves.findLastIndex((move) => move.agent === agent);
  const move = state.moves[index];
  if (move === undefined) return state;
  return { ...state, moves: state.moves.with(index, step(move)) };
}

/** Marks a move that was speaking as stopped, as the group has ended. */
function ended(state: GroupRunState, outcome: string, failed: boolean): GroupRunState {
  const stop = (move: GroupMove): GroupMove =>
    move.status === "speaking" ? { ...move, status: "stopped", tool: null } : move;
  return { moves: state.moves.map(stop), waiting: [], outcome, failed };
}

function decided(state: GroupRunState, callId: string): GroupRunState {
  return { ...state, waiting: state.waiting.filter(({ approval }) => approval.callId !== callId) };
}

function agentOf(event: object): string | null {
  return "agent" in event && typeof event.agent === "string" ? event.agent : null;
}
