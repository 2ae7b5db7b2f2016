import type { WireRunEvent } from "skein/client";
import type { RunError } from "../../../src/session/log/run-event.ts";
import type { Approval } from "../../../src/session/log/run-event.ts";
import type { AssistantMessage, ToolCall, ToolMessage } from "../../../src/session/message.ts";

/** A round of a run, as far as its events have arrived. */
export interface LiveRound {
  /** Unique in the run. */
  readonly key: string;
  /** The agent of a group; null outside a group. */
  readonly agent: string | null;
  readonly text: string;
  readonly thinking: string;
  readonly calls: readonly ToolCall[];
  /** The number of the attempt, if the model failed before. */
  readonly attempt: number | null;
  /** The complete answer, once it has arrived. */
  readonly message: AssistantMessage | null;
  /** When the end of the round was received; null while it is active. */
  readonly endedAt: number | null;
}

/** The state of a call. */
export type LiveTool =
  | { readonly state: "waiting"; readonly approval: Approval }
  | { readonly state: "running" }
  | { readonly state: "done"; readonly message: ToolMessage };

/** The state of a run, reduced from its events. */
export interface RunState {
  readonly rounds: readonly LiveRound[];
  /** By the call's id. */
  readonly tools: Readonly<Record<string, LiveTool>>;
  /** The questions of runs inside tools; their calls are in no turn of this session. */
  readonly inner: readonly Approval[];
  /** The agent of a group that is speaking. */
  readonly speaker: string | null;
  readonly ended: boolean;
  readonly problem: RunProblem | null;
}

/** Why a run failed. */
export type RunProblem = Pick<RunError, "code" | "message">;

/** The initial state. */
export const NO_EVENTS: RunState = {
  rounds: [],
  tools: {},
  inner: [],
  speaker: null,
  ended: false,
  problem: null,
};

/** The reducer: the state after one more event; `now` is when it arrived. */
export function stepRun(state: RunState, event: WireRunEvent, now: number): RunState {
  const agent = "agent" in event ? event.agent : null;
  switch (event.type) {
    case "run-started":
      return claimed(state, agent);
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

/** The problem of a failed run, from its last event; null otherwise. */
export function problemIn(event: WireRunEvent): RunProblem | null {
  if (event.type === "run-failed" || event.type === "group-failed") return event.error;
  if (event.type !== "group-finished" || event.outcome.reason !== "agent-failed") return null;
  return event.outcome.error;
}

/** Another process has claimed the run: discards the unfinished round, running tools and questions inside tools. */
function claimed(state: RunState, agent: string | null): RunState {
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

/** Changes the agent's unfinished round; the first event of a new round creates it. */
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

/** Adds the arguments of a started call, if the model did not stream them. */
function withCall(
  state: RunState,
  agent: string | null,
  { callId: id, name, arguments: given }: Extract<WireRunEvent, { type: "tool-started" }>,
): RunState {
  const isOpen = state.rounds.some((round) => round.agent === agent && round.endedAt === null);
  // A call of an earlier run is in the transcript, and belongs to no round of this one.
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
  // A provider may stream the second call first.
  return Array.from(next, (call, index) => call ?? { id: `call-${index}`, name: "", arguments: "" });
}
