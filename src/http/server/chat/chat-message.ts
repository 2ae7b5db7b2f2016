import type { Content, ContentPart } from "../../../session/message.ts";
import type { ChatRequest } from "../../chat-wire.ts";
import type { QuestionAnswer } from "../runs/cancel-and-answer.ts";
import { fileSource } from "../routes/blob-routes.ts";
import { refuse } from "../schema.ts";

/** The new part of a request: a user's message, or answers to questions about calls. */
export type ChatMessage =
  | { readonly role: "user"; readonly id: string; readonly content: Content }
  | { readonly role: "assistant"; readonly answers: readonly QuestionAnswer[] };

type Fields = Readonly<Record<string, unknown>>;

/** The last message of a request, the only new one. @throws {HttpError} `INVALID_REQUEST`. */
export function lastMessageOf({ messages }: ChatRequest): ChatMessage {
  const at = `body.messages.${messages.length - 1}`;
  const message: Fields = messages.at(-1) ?? refuse("body.messages", "There is no message.");
  const { id, role, parts } = message;
  if (!Array.isArray(parts)) {
    refuse(`${at}.parts`, "A message has parts since AI SDK 5; use useChat of @ai-sdk/react 3 (ai 6) or later.");
  }
  if (role === "assistant") return { role, answers: answersOf(parts as Fields[], at) };
  if (role !== "user") refuse(`${at}.role`, "The last message is neither a person's nor an answer to questions.");
  if (typeof id !== "string" || id === "" || id.length > 400)
    refuse(`${at}.id`, "A message has an id of 1 to 400 characters.");
  return { role: "user", id, content: contentOf(parts as Fields[], at) };
}

function answersOf(parts: readonly Fields[], at: string): readonly QuestionAnswer[] {
  const answers = parts.flatMap((part): QuestionAnswer[] => {
    if (part?.state !== "approval-responded") return [];
    const { id, approved, reason } = (part.approval ?? {}) as Fields;
    if (typeof id !== "string" || typeof approved !== "boolean")
      refuse(`${at}.parts`, "An approval has an id and an answer.");
    return [{ question: id, approve: approved, ...(typeof reason === "string" && !approved ? { reason } : {}) }];
  });
  if (answers.length > 0) return answers;
  return refuse(`${at}.parts`, "No call of it was approved or denied, and the server runs tools itself.");
}

function contentOf(parts: readonly Fields[], at: string): Content {
  const content = parts.map((part, index) => partOf(part, `${at}.parts.${index}`));
  const [only, ...others] = content;
  if (only === undefined) refuse(`${at}.parts`, "The message is empty.");
  return others.length === 0 && only.type === "text" ? only.text : content;
}

function partOf(part: Fields, at: string): ContentPart {
  const { type, text, mediaType, filename, url } = part ?? {};
  if (type === "text" && typeof text === "string") return { type, text };
  if (type !== "file" || typeof mediaType !== "string" || typeof url !== "string") {
    return refuse(at, "A person's message has text and files.");
  }
  const source = fileSource(url, `${at}.url`);
  const name = typeof filename === "string" ? { name: filename } : {};
  return { type: mediaType.startsWith("image/") ? "image" : "file", mediaType, ...source, ...name };
}
