import type { JsonObject } from "../internal/json.ts";
import type { EntryOf, SessionStatus } from "./entry.ts";
import type { PathSummary, SessionHead } from "./fold.ts";
import type { Content, Message, ToolCall } from "./message.ts";
import type { Usage } from "./usage.ts";

/** One turn of a session: a message on the active path, with what it spent. */
export interface SessionTurn {
  /** The id of the entry that holds it. */
  readonly turnId: string;
  readonly role: Message["role"];
  readonly content: Content | null;
  readonly timestamp: string;
  readonly metadata: JsonObject;
  readonly toolCalls?: readonly ToolCall[];
  /** Of a tool's answer: the call that it answers, and the tool. */
  readonly toolCallId?: string;
  readonly toolName?: string;
  /** The agent that said it, in a session of several. */
  readonly agent?: string;
  readonly provider?: string;
  readonly model?: string;
  readonly usage?: Usage;
  readonly tokensUsed: number;
  /** In US dollars. */
  readonly cost: number;
}

/** What a session adds up to at a leaf. */
export interface SessionState {
  readonly sessionId: string;
  readonly userId: string | null;
  readonly status: SessionStatus;
  readonly name: string | null;
  /** The turns on the active path, oldest first; empty where they were not asked for. */
  readonly turns: readonly SessionTurn[];
  readonly turnCount: number;
  readonly metadata: JsonObject;
  readonly variables: JsonObject;
  readonly systemPrompt: string | null;
  readonly activeTools: readonly string[];
  readonly activeSkills: readonly string[];
  readonly createdAt: string;
  readonly updatedAt: string;
  /** The latest checkpoint of the session, or null. */
  readonly checkpointId: string | null;
  /** What the turns on the active path spent. */
  readonly totalTokens: number;
  readonly totalCost: number;
  /** What was ever spent, on all branches, summaries included. */
  readonly spent: { readonly totalTokens: number; readonly totalCost: number };
  readonly parentSessionId: string | null;
  readonly branchName: string | null;
  readonly version: number;
  readonly leafId: string | null;
}

/** The turn that a message entry is. */
export function turnOf(entry: EntryOf<"message">): SessionTurn {
  const { message, id, timestamp } = entry;
  const turn = {
    turnId: id,
    role: message.role,
    content: message.content,
    timestamp,
    metadata: message.metadata ?? {},
    ...(message.agent === undefined ? {} : { agent: message.agent }),
    tokensUsed: 0,
    cost: 0,
  };
  if (message.role === "tool") return { ...turn, toolCallId: message.toolCallId, toolName: message.name };
  if (message.role !== "assistant") return turn;
  const { toolCalls, provider, model, usage, cost = 0 } = message;
  return {
    ...turn,
    ...(toolCalls === undefined ? {} : { toolCalls }),
    ...(provider === undefined ? {} : { provider }),
    ...(model === undefined ? {} : { model }),
    ...(usage === undefined ? {} : { usage }),
    tokensUsed: usage?.totalTokens ?? 0,
    cost,
  };
}

/** The state at a leaf (default: the head's own), given the turns of its path. */
export function stateOf(
  head: SessionHead,
  turns: readonly SessionTurn[],
  at: { readonly checkpointId: string | null; readonly leafId?: string | null; readonly path?: PathSummary },
): SessionState {
  const { header } = head;
  const { path = head.path, leafId = head.leafId } = at;
  const { variables, systemPrompt, activeTools, activeSkills } = path.settings;
  return Object.freeze({
    sessionId: header.id,
    userId: header.userId,
    status: head.status,
    name: head.name,
    turns: Object.freeze([...turns]),
    turnCount: path.turnCount,
    metadata: header.metadata,
    variables,
    systemPrompt,
    activeTools,
    activeSkills,
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
