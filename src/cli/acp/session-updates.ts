import { resolve } from "node:path";
import { toldCall } from "../../agent/answer-teller.ts";
import { callParts, shownText } from "../../agent/approval-text.ts";
import type { Approval, Content, JsonObject, JsonValue, Message, RunEvent, ToolMessage } from "../../index.ts";
import { approvalQuestion } from "../chat/approval-question.ts";
import { asideOf } from "../chat/aside-of.ts";
import { resultText } from "../chat/describe-result.ts";
import type { acp } from "./acp-sdk.ts";
import { blocksOf } from "./prompt-content.ts";

type CallFields = Omit<acp.ToolCall, "toolCallId">;

const TITLE_CHARACTERS_MAX = 200;
const STOP_REASONS: Readonly<Record<string, acp.StopReason>> = { length: "max_tokens", content_filter: "refusal" };
/** What the workspace tools do that run no command. */
const KINDS: Readonly<Record<string, acp.ToolKind>> = {
  read_workspace_file: "read",
  write_workspace_file: "edit",
  edit_workspace_file: "edit",
  list_workspace_files: "search",
  workspace_path_exists: "search",
};

/** What an editor is told of a session: what was said in it before, and what happens. */
export class SessionUpdates {
  readonly #workspace: string;
  /** The calls that the editor knows of. */
  readonly #calls = new Set<string>();
  #streamed = false;

  constructor(workspace: string) {
    this.#workspace = workspace;
  }

  /** What was said. */
  said(message: Message): acp.SessionUpdate[] {
    if (message.role === "user") return spoken("user_message_chunk", message.content);
    if (message.role === "tool") return [this.#call(message.toolCallId, resultOf(message), message.name)];
    if (message.role !== "assistant") return [];
    const calls = (message.toolCalls ?? []).map((call) =>
      this.waits({ callId: call.id, name: call.name, arguments: toldCall(call).input as JsonValue }),
    );
    return [...answered(message.content), ...calls];
  }

  /** What happens in a run. */
  happened(event: RunEvent): acp.SessionUpdate[] {
    switch (event.type) {
      case "round-started":
        this.#streamed = false;
        return [];
      case "text-delta":
        this.#streamed = true;
        return spoken("agent_message_chunk", event.text);
      case "thinking-delta":
        return spoken("agent_thought_chunk", event.text);
      case "tool-started":
        return [this.#call(event.callId, { ...this.#card(event), status: "in_progress" }, event.name)];
      case "tool-finished":
        return this.said(event.message);
      case "round-finished":
        // A model that does not stream says everything at once.
        return this.#streamed ? [] : spoken("agent_message_chunk", event.message.content);
      default:
        return spoken("agent_thought_chunk", asideOf(event));
    }
  }

  /** A call that has not begun. */
  waits(call: Pick<Approval, "callId" | "name" | "arguments">): acp.SessionUpdate {
    return this.#call(call.callId, { ...this.#card(call), status: "pending" }, call.name);
  }

  /** A call as whoever is asked about it sees it: all of it, where it would act, and what it could reach. */
  asked(approval: Approval): acp.ToolCallUpdate {
    const { text, question } = approvalQuestion(approval);
    const { content = [], ...card } = this.#card(approval);
    // A change is shown as one; all else that a call says must be read before an answer.
    const isShown = content.length > 0 && callParts(approval).rest === null;
    const rest = isShown || text === null ? [] : blocksOf(text).map(asContent);
    return { toolCallId: approval.callId, ...card, title: question, content: [...content, ...rest] };
  }

  #call(toolCallId: string, fields: Partial<CallFields>, name: string): acp.SessionUpdate {
    if (this.#calls.has(toolCallId)) return { sessionUpdate: "tool_call_update", toolCallId, ...fields };
    this.#calls.add(toolCallId);
    return { sessionUpdate: "tool_call", toolCallId, title: name, ...fields };
  }

  /** What a call is about, where, and what it would change. */
  #card({ name, arguments: given }: Pick<Approval, "name" | "arguments">): CallFields {
    const { kind, text } = callParts({ arguments: given });
    const { path, start_line: line, content, old_text: oldText = null, new_text: newText = content } = fieldsOf(given);
    const at = typeof path === "string" ? resolve(this.#workspace, path) : null;
    const about = kind === "command" ? text : at === null ? "" : String(path);
    const change = { type: "diff", path: at, oldText, newText } as acp.ToolCallContent;
    return {
      title: shownText(`${name} ${about}`).replaceAll(/\s+/g, " ").trim().slice(0, TITLE_CHARACTERS_MAX),
      kind: KINDS[name] ?? (kind === "command" || kind === "program" ? "execute" : "other"),
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

/** What someone says, in pieces that an editor puts together. */
export function spoken(
  sessionUpdate: "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk",
  content: Content | null,
): acp.SessionUpdate[] {
  return blocksOf(content).map((block) => ({ sessionUpdate, content: block }));
}

/** An answer with what the model thought. */
function answered(content: Content | null): acp.SessionUpdate[] {
  if (content === null || typeof content === "string") return spoken("agent_message_chunk", content);
  return content.flatMap((part) =>
    part.type === "thinking" ? spoken("agent_thought_chunk", part.text) : spoken("agent_message_chunk", [part]),
  );
}

/** What came of a call. The change that a call has made stays in sight, unless it failed. */
function resultOf(message: ToolMessage): Partial<CallFields> {
  const { name, content, isError = false } = message;
  if (KINDS[name] === "edit" && !isError) return { status: "completed" };
  const shown = blocksOf(typeof content === "string" ? resultText(message) : content);
  return { status: isError ? "failed" : "completed", content: shown.map(asContent) };
}

function asContent(content: acp.ContentBlock): acp.ToolCallContent {
  return { type: "content", content };
}

function fieldsOf(given: JsonValue): JsonObject {
  return typeof given === "object" && given !== null && !Array.isArray(given) ? (given as JsonObject) : {};
}
