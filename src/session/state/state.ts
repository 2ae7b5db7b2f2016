import { type JsonObject, copyJson, NotJson } from "../../internal/json.ts";
import type { EntryOf, SessionStatus } from "../log/entry.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead } from "../log/fold.ts";
import type { Content, Message, StopReason, ToolCall } from "../message.ts";
import type { Settings } from "../log/settings.ts";
import type { Usage } from "../usage.ts";
import { SessionError } from "../errors.ts";

/** One turn of a session: a message on the active path, with its usage and cost. */
export interface SessionTurn {
  /** The id of its entry. */
  readonly turnId: string;
  readonly role: Message["role"];
  readonly content: Content | null;
  readonly timestamp: string;
  readonly metadata: JsonObject;
  readonly toolCalls?: readonly ToolCall[];
  /** For a tool result: the call that it answers, and the tool. */
  readonly toolCallId?: string;
  readonly toolName?: string;
  /** For a tool result: whether the call failed. */
  readonly isError?: boolean;
  /** For a model's answer: why it stopped. */
  readonly stopReason?: StopReason;
  /** The agent that wrote it, in a session with several agents. */
  readonly agent?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly usage?: Usage;
  readonly tokensUsed: number;
  /** In US dollars. */
  readonly cost: number;
}

/** The state of a session at a leaf. States are deeply frozen, and share nothing mutable with the log. */
export interface SessionState {
  readonly sessionId: string;
  readonly userId: string | null;
  readonly status: SessionStatus;
  readonly name: string | null;
  /** The turns on the active path, oldest first; empty if they were not requested. */
  readonly turns: readonly SessionTurn[];
  readonly turnCount: number;
  readonly metadata: JsonObject;
  readonly variables: JsonObject;
  readonly systemPrompt: string | null;
  readonly activeTools: readonly string[];
  readonly activeSkills: readonly string[];
  readonly createdAt: string;
  readonly updatedAt: string;
  /** The latest checkpoint of the session; null if there is none, or it was not requested. */
  readonly checkpointId: string | null;
  /** The usage of the turns on the active path. */
  readonly totalTokens: number;
  readonly totalCost: number;
  /** The total usage on all branches, summaries included. */
  readonly spent: { readonly totalTokens: number; readonly totalCost: number };
  readonly parentSessionId: string | null;
  readonly branchName: string | null;
  readonly version: number;
  readonly leafId: string | null;
}

/** Converts a message entry into a turn, deeply frozen. */
export function turnOf(entry: EntryOf<"message">): SessionTurn {
  const { message, id, timestamp } = entry;
  const turn = {
    turnId: id,
    role: message.role,
    content: frozenCopy(message.content),
    timestamp,
    metadata: frozenCopy(message.metadata ?? NO_METADATA),
    ...(message.agent === undefined ? {} : { agent: message.agent }),
    tokensUsed: 0,
    cost: 0,
  };
  if (message.role === "tool") {
    const failed = message.isError === undefined ? {} : { isError: message.isError };
    return Object.freeze({ ...turn, toolCallId: message.toolCallId, toolName: message.name, ...failed });
  }
  if (message.role !== "assistant") return Object.freeze(turn);
  const { toolCalls, provider, model, usage, cost = 0, stopReason } = message;
  return Object.freeze({
    ...turn,
    ...(toolCalls === undefined ? {} : { toolCalls: frozenCopy(toolCalls) }),
    ...(provider === undefined ? {} : { provider }),
    ...(model === undefined ? {} : { model }),
    ...(usage === undefined ? {} : { usage: frozenCopy(usage) }),
    ...(stopReason === undefined ? {} : { stopReason }),
    tokensUsed: usage?.totalTokens ?? 0,
    cost,
  });
}

/** The position of a state in the tree. A leaf other than the head's own needs the summary of its path. */
export interface StatePosition {
  readonly checkpointId: string | null;
  readonly leafId?: string | null;
  readonly path?: PathSummary;
}

/** The state at a leaf (default: the head's own), computed from the turns and the settings of its path. */
export function stateOf(
  head: SessionHead,
  settings: Settings,
  turns: readonly SessionTurn[],
  at: StatePosition,
): SessionState {
  const { header } = head;
  const { leafId = head.leafId } = at;
  const path = at.path ?? pathTo(leafId, head);
  const { variables, systemPrompt, activeTools, activeSkills } = settings;
  return Object.freeze({
    sessionId: header.id,
    userId: header.userId,
    status: head.status,
    name: head.name,
    turns: Object.freeze(turns.map((turn) => frozenCopy(turn))),
    turnCount: path.turnCount,
    metadata: frozenCopy(header.metadata),
    variables: frozenCopy(variables),
    systemPrompt,
    activeTools: frozenCopy(activeTools),
    activeSkills: frozenCopy(activeSkills),
    createdAt: header.createdAt,
    updatedAt: head.updatedAt,
    checkpointId: at.checkpointId,
    totalTokens: path.usage.totalTokens,
    totalCost: path.cost,
    spent: Object.freeze({ totalTokens: head.usage.totalTokens, totalCost: head.cost }),
    parentSessionId: header.forkedFrom?.sessionId ?? header.lineage.parents[0] ?? null,
    branchName: header.forkedFrom?.branchName ?? null,
    version: head.version,
    leafId,
  });
}

const NO_METADATA: JsonObject = Object.freeze({});

function pathTo(leafId: string | null, head: SessionHead): PathSummary {
  if (leafId === head.leafId) return head.path;
  if (leafId === null) return EMPTY_PATH;
  throw new TypeError(`The state at ${leafId} needs the summary of the path to it.`);
}

/**
 * An immutable value: the value itself if it is frozen, else a frozen copy. A frozen value is assumed to be deeply frozen.
 *
 * @throws {SessionError} `INVALID_VALUE` for a value that is not JSON.
 */
export function frozenCopy<T>(value: T, what = "value"): T {
  if (typeof value === "object" && Object.isFrozen(value)) return value;
  try {
    return copyJson(value, what) as T;
  } catch (error) {
    if (error instanceof NotJson) throw new SessionError("INVALID_VALUE", `${error.message}.`, { cause: error });
    throw error;
  }
}
