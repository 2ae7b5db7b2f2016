import { resolve } from "node:path";
import { callParts, shownText } from "../../agent/approval-text.ts";
import { DedupedText } from "../../agent/deduped-text.ts";
import type { Approval, Content, ContentPart, Message, RunEvent, SessionHead, ToolMessage } from "../../index.ts";
import { asObject } from "../../internal/json.ts";
import { parseJsonObject } from "../../models/parse-json-object.ts";
import { partsOf } from "../../session/message.ts";
import { workspaceTools } from "../../tools/workspace-tools.ts";
import { approvalQuestion } from "../chat/approval-question.ts";
import { asideOf } from "../chat/aside-of.ts";
import { resultText } from "../chat/describe-result.ts";
import type { acp } from "./acp-sdk.ts";

type Call = Pick<Approval, "callId" | "name" | "arguments">;
type Chunk = "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk";
type CallFields = Omit<acp.ToolCall, "toolCallId">;

const TITLE_CHARACTERS_MAX = 200;
const STOP_REASONS: Readonly<Record<string, acp.StopReason>> = { length: "max_tokens", content_filter: "refusal" };
const KIND_OF_EFFECTS = { reads: "read", writes: "edit", commands: "execute" } as const;
/** The effects of the workspace tools; what other tools declare about themselves is not trusted. */
const KINDS: Readonly<Record<string, acp.ToolKind>> = Object.fromEntries(
  workspaceTools.map(({ schema, effects = "commands" }) => [schema.name, KIND_OF_EFFECTS[effects]]),
);

/** The updates that an editor gets about a session: its earlier messages, and its events. */
export class SessionUpdates {
  readonly #workspace: string;
  /** The calls that the editor knows of. */
  readonly #calls = new Set<string>();
  readonly #said = new DedupedText();

  constructor(workspace: string) {
    this.#workspace = workspace;
  }

  /** A message. */
  said(message: Message): acp.SessionUpdate[] {
    if (message.role === "user") return spoken("user_message_chunk", message.content);
    if (message.role === "tool") return [this.#update(message.toolCallId, message.name, resultOf(message))];
    if (message.role !== "assistant") return [];
    const calls = (message.toolCalls ?? []).map(({ id: callId, name, arguments: text }) =>
      this.call({ callId, name, arguments: parseJsonObject(text) ?? text }, "pending"),
    );
    return [...spoken("agent_message_chunk", message.content), ...calls];
  }

  /** Converts the events of a run. */
  happened(event: RunEvent): acp.SessionUpdate[] {
    if (event.type === "tool-started") return [this.call(event, "in_progress")];
    if (event.type === "tool-finished") return this.said(event.message);
    const words = this.#said.take(event).map(({ kind, text }) => ({ type: kind, text }));
    return [...spoken("agent_thought_chunk", asideOf(event)), ...spoken("agent_message_chunk", words)];
  }

  /** A call that has no result. */
  call(call: Call, status: "pending" | "in_progress"): acp.SessionUpdate {
    return this.#update(call.callId, call.name, { ...this.#card(call), status });
  }

  /** A call as shown to the user who must approve it: all arguments, where it would act, and what it could reach. */
  asked(approval: Approval): acp.ToolCallUpdate {
    const { text, question } = approvalQuestion(approval);
    const { content = [], ...card } = this.#card(approval);
    // A change is shown as one; all else that a call says must be read before an answer.
    const isWhole = content.length > 0 && callParts(approval).rest === null;
    const shown = isWhole ? content : [...content, ...contentOf(text)];
    return { toolCallId: approval.callId, ...card, title: question, content: shown };
  }

  #update(toolCallId: string, title: string, fields: Partial<CallFields>): acp.SessionUpdate {
    if (this.#calls.has(toolCallId)) return { sessionUpdate: "tool_call_update", toolCallId, ...fields };
    this.#calls.add(toolCallId);
    return { sessionUpdate: "tool_call", toolCallId, title, ...fields };
  }

  /** The subject of a call: what it does, where, and what it would change. */
  #card({ name, arguments: given }: Call): CallFields {
    const { kind, text } = callParts({ arguments: given });
    const { path, start_line: line, content, old_text: oldText = null, new_text: newText = content } = asObject(given);
    const at = typeof path === "string" ? resolve(this.#workspace, path) : null;
    const about = kind === "command" ? text : at === null ? "" : String(path);
    const change = { type: "diff", path: at, oldText, newText } as acp.ToolCallContent;
    return {
      title: shownText(`${name} ${about}`).replaceAll(/\s+/g, " ").trim().slice(0, TITLE_CHARACTERS_MAX),
      kind: KINDS[name] ?? "other",
      rawInput: given,
      ...(at !== null && { locations: [{ path: at, ...(typeof line === "number" && { line }) }] }),
      content: kind === "edit" || kind === "content" ? [change] : [],
    };
  }
}

/** Why a turn has ended, as far as an event says it. */
export function stopReasonAfter(event: RunEvent, before: acp.StopReason): acp.StopReason {
  if (event.type === "round-finished") return STOP_REASONS[event.stopReason] ?? "end_turn";
  if (event.type === "run-finished" && event.truncated) return "max_turn_requests";
  return event.type === "run-failed" ? "cancelled" : before;
}

/** The text of a message in chunks, which the editor joins; an empty text has none. */
export function spoken(as: Chunk, content: Content | null): acp.SessionUpdate[] {
  const parts = partsOf(content).filter((part) => !("text" in part && part.text === ""));
  return parts.map((part) => {
    const sessionUpdate = part.type === "thinking" ? "agent_thought_chunk" : as;
    return { sessionUpdate, content: blockOf(part) };
  });
}

/** A session as an editor lists it. */
export function infoOf({ header, name, firstMessage, modifiedAt }: SessionHead) {
  return { sessionId: header.id, cwd: header.cwd ?? process.cwd(), title: name ?? firstMessage, updatedAt: modifiedAt };
}

/** The result of a call. The change that a call has made stays visible, unless it failed. */
function resultOf(message: ToolMessage): Partial<CallFields> {
  const { name, content, isError = false } = message;
  if (KINDS[name] === "edit" && !isError) return { status: "completed" };
  const result = contentOf(typeof content === "string" ? resultText(message) : content);
  return { status: isError ? "failed" : "completed", content: result };
}

function contentOf(content: Content | null): acp.ToolCallContent[] {
  return partsOf(content).map((part) => ({ type: "content", content: blockOf(part) }));
}

function blockOf(part: ContentPart): acp.ContentBlock {
  if ("text" in part) return { type: "text", text: part.text };
  const { type, mediaType, name = "unnamed" } = part;
  return type === "image" && "data" in part
    ? { type, mimeType: mediaType, data: part.data }
    : { type: "text", text: `[${name}: ${mediaType}]` };
}
