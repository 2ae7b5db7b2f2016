import type { Content, ContentPart } from "../../../session/message.ts";
import { messageIdOf, type ShownTurn } from "../../shown-turn.ts";
import type { BlobUrl } from "../../ui/ui-parts.ts";
import type { Message } from "./ag-ui-core.ts";

type Parts = Exclude<Extract<Message, { role: "user" }>["content"], string>;

/**
 * Converts the turns of a session to AG-UI messages. The id of an answer consists of the user message's id and the
 * number of earlier answers to it. It is known when the first word is streamed, so a snapshot has the answer under the
 * same id.
 */
export function toAgUiMessages(turns: readonly ShownTurn[], blobUrl?: BlobUrl): Message[] {
  let [asked, round] = ["", 0];
  return turns.flatMap((turn): Message[] => {
    const { turnId, role, content, toolCallId = "" } = turn;
    if (role === "tool")
      return [{ id: `${asked}/${round}/${toolCallId}`, role, toolCallId, content: sent(content, blobUrl) }];
    if (role === "assistant") return answerOf(`${asked}/${++round}`, turn);
    const id = messageIdOf(turnId);
    // A message sent during a run does not start another run.
    if (role === "user" && (asked === "" || id !== turnId)) [asked, round] = [id, 0];
    return [{ id, role, content: role === "user" ? sent(content, blobUrl) : wholeText(content, "text") } as Message];
  });
}

/** The text of an answer as one string, joined like the streamed text. */
function wholeText(content: Content | null, type: "text" | "thinking"): string {
  if (content === null || typeof content === "string") return type === "text" ? (content ?? "") : "";
  return content.map((part) => (part.type === type ? part.text : "")).join("");
}

/** The content of a user message or a tool result, in the form that is sent. */
export function sent(content: Content | null, blobUrl: BlobUrl = (blob) => blob): string | Parts {
  if (content === null || typeof content === "string") return content ?? "";
  return content.flatMap((part): Parts => (part.type === "thinking" ? [] : [partOf(part, blobUrl)]));
}

function answerOf(id: string, { content, toolCalls = [] }: ShownTurn): Message[] {
  const [thought, text] = [wholeText(content, "thinking"), wholeText(content, "text")];
  const before: Message[] = thought === "" ? [] : [{ id: `${id}/thought`, role: "reasoning", content: thought }];
  if (text === "" && toolCalls.length === 0) return before;
  const calls = toolCalls.map(({ id: callId, ...call }) => ({ id: callId, type: "function" as const, function: call }));
  const said = { ...(text !== "" && { content: text }), ...(calls.length > 0 && { toolCalls: calls }) };
  return [...before, { id, role: "assistant", ...said }];
}

function partOf(part: Exclude<ContentPart, { type: "thinking" }>, blobUrl: BlobUrl): Parts[number] {
  if (part.type === "text") return part;
  const mimeType = part.mediaType;
  const source =
    "blob" in part
      ? ({ type: "url", value: blobUrl(part.blob, mimeType), mimeType } as const)
      : ({ type: "data", value: part.data, mimeType } as const);
  const named = part.name === undefined ? {} : { metadata: { filename: part.name } };
  return { type: part.type === "image" ? "image" : "document", source, ...named };
}
