import type { AssistantMessage, Content, ContentPart } from "../../../session/message.ts";
import { inputIdOf } from "../../../session/open-runs.ts";
import { messageIdOf } from "../../ui/message-id.ts";
import type { UITurn } from "../../ui/to-ui-messages.ts";
import type { AgUiMessage } from "./ag-ui-core.ts";

type Parts = Exclude<Extract<AgUiMessage, { role: "user" }>["content"], string>;

/**
 * The turns of a session as messages of AG-UI. An answer of a model has the id of what a person said, with how many
 * answers came before it: that is known when its first word is streamed, so that a snapshot has it under the same id.
 */
export function toAgUiMessages(turns: readonly UITurn[]): AgUiMessage[] {
  let [asked, round] = ["", 0];
  return turns.flatMap((turn): AgUiMessage[] => {
    const { turnId, role, content, toolCalls = [], toolCallId = "" } = turn;
    if (role === "tool")
      return [{ id: resultIdOf(asked, round, toolCallId), role, toolCallId, content: sent(content) }];
    if (role === "assistant") {
      if (asked === "") asked = turnId;
      round += 1;
      return answerOf(answerIdOf(asked, round), { content, toolCalls });
    }
    const id = messageIdOf(turnId);
    // What is said to a run in the middle does not begin another one.
    if (role === "user" && (asked === "" || id !== turnId)) [asked, round] = [id, 0];
    return [{ id, role, content: role === "user" ? sent(content) : wholeText(content, "text") } as AgUiMessage];
  });
}

/** The id of what asked for a run. */
export function askedIdOf(runId: string): string {
  return messageIdOf(inputIdOf(runId));
}

/** The id of an answer of a model, by what was asked and how many it is. */
export function answerIdOf(asked: string, round: number): string {
  return `${asked}/${round}`;
}

/** The id of what a model thought before an answer. */
export function reasoningIdOf(answerId: string): string {
  return `${answerId}/reasoning`;
}

/** The id of what a tool answered. */
export function resultIdOf(asked: string, round: number, callId: string): string {
  return `${answerIdOf(asked, round)}/${callId}`;
}

/** The text of an answer in one piece, as it is streamed. */
export function wholeText(content: Content | null, type: "text" | "thinking"): string {
  if (content === null || typeof content === "string") return type === "text" ? (content ?? "") : "";
  return content.map((part) => (part.type === type ? part.text : "")).join("");
}

/** What a person or a tool said, as it is sent. */
export function sent(content: Content | null): string | Parts {
  if (content === null || typeof content === "string") return content ?? "";
  return content.flatMap((part): Parts => (part.type === "thinking" ? [] : [partOf(part)]));
}

function answerOf(
  id: string,
  { content, toolCalls = [] }: Pick<AssistantMessage, "content" | "toolCalls">,
): AgUiMessage[] {
  const [thought, text] = [wholeText(content, "thinking"), wholeText(content, "text")];
  const messages: AgUiMessage[] = [];
  if (thought !== "") messages.push({ id: reasoningIdOf(id), role: "reasoning", content: thought });
  const calls = toolCalls.map(({ id: callId, ...call }) => ({ id: callId, type: "function" as const, function: call }));
  if (text === "" && calls.length === 0) return messages;
  const said = { ...(text === "" ? {} : { content: text }), ...(calls.length === 0 ? {} : { toolCalls: calls }) };
  return [...messages, { id, role: "assistant", ...said }];
}

function partOf(part: Exclude<ContentPart, { type: "thinking" }>): Parts[number] {
  if (part.type === "text") return part;
  const source = { type: "data", value: part.data, mimeType: part.mediaType } as const;
  const named = part.name === undefined ? {} : { metadata: { filename: part.name } };
  return { type: part.type === "image" ? "image" : "document", source, ...named };
}
