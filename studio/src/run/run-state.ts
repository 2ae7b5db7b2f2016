import type { WireRunEvent } from "skein/client";
import type { RunError } from "../../../src/session/log/run-event.ts";
import type { Approval } from "../../../src/session/log/run-event.ts";
import type { AssistantMessage, ToolCall, ToolMessage } from "../../../src/session/message.ts";

/** One turn of a model as far as it is known. */
export interface LiveRound {
  /** Unique in the run. */
  readonly key: string;
  /** The agent of a group; null outside of one. */
  readonly agent: string | null;
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly ToolCall[];
  /** Which try this is, where the model failed before. */
  readonly attempt: number | null;
  /** The whole answer, once it is there. */
  readonly message: AssistantMessage | null;
  /** When it was heard that the round is over; null while it goes on. */
  readonly endedAt: number | null;
}

/** How a call of the run itself stands. */
export type LiveTool =
  | { readonly state: "waiting"; readonly approval: Approval }
  | { readonly state: "running" }
  | { readonly state: "done"; readonly message: ToolMessage };

/** A run as its events tell it. */
export interface RunState {
  readonly rounds: readonly LiveRound[];
  /** By the id of the call. */
  readonly tools: Readonly<Record<string, LiveTool>>;
  /** What runs inside of tools ask: their calls are in no turn of this session. */
  readonly inner: readonly Approval[];
  /** The agent of a group whose go it is. */
  readonly speaker: string | null;
  readonly ended: boolean;
  readonly problem: RunProblem | null;
}

/** Why a run did not come to its end. */
export type RunProblem = Pick<RunError, "code" | "message">;

/** A run of which nothing was heard yet. */
export const NOTHING_HEARD: RunState = {
  rounds: [],
  tools: {},
  inner: [],
  speaker: null,
  ended: false,
  problem: null,
};

/** The run after one more event; `now` is when it was heard. */
export function hear(state: RunState, event: WireRunEvent, now: number): RunState {
  const agent = "agent" in event ? event.agent : null;
  switch (event.type) {
    case "run-started":
      return taken(state, agent);
    case "round-started":
      return withRound(state, agent, (round) => round);
    case "text-delta":
      return withRound(state, agent, (round) => ({ ...round, text: round.text + event.text }));
    case "thinking-delta":
      return withRound(state, agent, (round) => ({ ...round, thinking: round.thinking + event.text }));
    case "tool-call-delta":
      return withRound(state, agent, (round) => ({ ...round, calls: withDelta(round.calls, event) }));
    case "model-retry":
      return withRound(state, agent, (round) => ({
        ...round,
        text: "",
        thinking: "",
        calls: [],
        attempt: event.attempt + 1,
      }));
    case "round-finished":
      return withRound(state, agent, (round) => ({ ...round, message: event.message, endedAt: now }));
    case "tool-started":
      return withTool(withCall(state, agent, event), event.callId, { state: "running" });
    case "tool-finished":
      return withTool(state, event.callId, { state: "done", message: event.message });
    case "approval-required":
      return event.approval.innerRunId === undefined
        ? withTool(state, event.approval.callId, { state: "waiting", approval: event.approval })
        : { ...state, inner: [...state.inner, event.approval] };
    case "approval-settled":
      return { ...state, inner: state.inner.filter(({ question }) => question !== event.question) };
    case "run-parked":
      return { ...state, tools: without(state.tools, "waiting"), inner: [] };
    case "agent-selected":
      return { ...state, speaker: event.agent };
    case "run-finished":
    case "group-finished":
    case "run-failed":
    case "group-failed":
      return agent === null ? endedWith(state, problemIn(event), now) : state;
    default:
      return state;
  }
}

/** Why the run that an event ends did not come to its end; null where it did. */
export function problemIn(event: WireRunEvent): RunProblem | null {
  if (event.type === "run-failed" || event.type === "group-failed") return event.error;
  if (event.type !== "group-finished" || event.outcome.reason !== "agent-failed") return null;
  return event.outcome.error;
}

/** A process has taken the run: what another was in the middle of is void, as is what its tools did and asked inside. */
function taken(state: RunState, agent: string | null): RunState {
  const rounds = state.rounds.filter((round) => round.agent !== agent || round.endedAt !== null);
  return { ...state, rounds, tools: without(state.tools, "running"), inner: [] };
}

function without(tools: RunState["tools"], state: LiveTool["state"]): RunState["tools"] {
  return Object.fromEntries(Object.entries(tools).filter(([, tool]) => tool.state !== state));
}

function endedWith(state: RunState, problem: RunProblem | null, now: number): RunState {
  const rounds = state.rounds.map((round) => (round.endedAt === null ? { ...round, endedAt: now } : round));
  return { ...state, rounds, ended: true, problem, speaker: null };
}

/** Changes the round that an agent is in; the first word of a new one begins it. */
function withRound(state: RunState, agent: string | null, change: (round: LiveRound) => LiveRound): RunState {
  const at = state.rounds.findLastIndex((round) => round.agent === agent && round.endedAt === null);
  const found = state.rounds[at];
  if (found !== undefined) return { ...state, rounds: state.rounds.with(at, change(found)) };
  const key = `${agent ?? ""}:${state.rounds.length}`;
  const fresh: LiveRound = {
    key,
    agent,
    text: "",
    thinking: "",
    calls: [],
    attempt: null,
    message: null,
    endedAt: null,
  };
  return { ...state, rounds: [...state.rounds, change(fresh)] };
}

/** Shows what a call is given from its start on, where the model did not stream it. */
function withCall(
  state: RunState,
  agent: string | null,
  { callId: id, name, arguments: given }: Extract<WireRunEvent, { type: "tool-started" }>,
): RunState {
  const isOpen = state.rounds.some((round) => round.agent === agent && round.endedAt === null);
  // The call of an answer that an earlier run left is in the transcript, and belongs to no round of this one.
  if (!isOpen) return state;
  return withRound(state, agent, (round) => {
    const call = { id, name, arguments: JSON.stringify(given) };
    const at = round.calls.findIndex((streamed) => streamed.id === id);
    if (at === -1) return { ...round, calls: [...round.calls, call] };
    return round.calls[at]?.arguments === "" ? { ...round, calls: round.calls.with(at, call) } : round;
  });
}

function withTool(state: RunState, callId: string, tool: LiveTool): RunState {
  return { ...state, tools: { ...state.tools, [callId]: tool } };
}

function withDelta(
  calls: readonly ToolCall[],
  delta: { readonly index: number; readonly id?: string; readonly name?: string; readonly arguments?: string },
): readonly ToolCall[] {
  const before = calls[delta.index] ?? { id: `call-${delta.index}`, name: "", arguments: "" };
  const after = {
    id: delta.id ?? before.id,
    name: before.name + (delta.name ?? ""),
    arguments: before.arguments + (delta.arguments ?? ""),
  };
  const next = [...calls];
  next[delta.index] = after;
  // A provider may begin with the second call.
  return Array.from(next, (call, index) => call ?? { id: `call-${index}`, name: "", arguments: "" });
}
