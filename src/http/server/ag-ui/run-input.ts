import { z } from "zod";
import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import type { Content, ContentPart } from "../../../session/message.ts";
import { inputIdOf } from "../../../session/log/open-runs.ts";
import { messageIdOf, type ShownTurn } from "../../shown-turn.ts";
import type { QuestionAnswer } from "../runs/cancel-and-answer.ts";
import { fileSource } from "../routes/blob-routes.ts";
import { id, json, jsonObject, list, named, refuse } from "../schema.ts";
import { PROTOCOL_VERSION } from "./ag-ui-core.ts";

const MESSAGES_MAX = 10_000;

/** A user's answer to a question of a run. */
type Resume = { readonly interruptId: string } & (
  | { readonly status: "cancelled" }
  | { readonly status: "resolved"; readonly payload: { readonly approved: boolean; readonly reason?: string } }
);

/** A request of an AG-UI client; other fields of its body are ignored. */
export interface RunInput {
  /** The session's id. */
  readonly threadId: string;
  readonly runId: string;
  readonly protocolVersion?: string | null;
  readonly messages: readonly JsonObject[];
  readonly state?: JsonValue;
  readonly resume?: readonly Resume[] | null;
}

// Strict, because other fields, such as edited arguments, would be ignored.
const payload = z.strictObject({ approved: z.boolean(), reason: z.string().optional() });
const resume = z.union(
  [
    z.looseObject({ interruptId: id, status: z.literal("cancelled") }),
    z.looseObject({ interruptId: id, status: z.literal("resolved"), payload }),
  ],
  { error: "An answer is cancelled, or resolved with { approved: true } or { approved: false, reason }." },
);

/** The body of a request. */
export const runInput: z.ZodType<RunInput> = named<RunInput>(
  "RunAgentInput",
  z.looseObject({
    threadId: id,
    runId: id,
    protocolVersion: z.string().max(100).nullish(),
    messages: list(jsonObject, MESSAGES_MAX),
    state: json.optional(),
    resume: list(resume, MESSAGES_MAX).nullish(),
  }) as unknown as z.ZodType<RunInput>,
);

/** @throws {HttpError} `INVALID_REQUEST` for a client of another major version; one before 1.0 does not say its version. */
export function checkVersion({ protocolVersion }: RunInput): void {
  if (!/^(?!1\.)\d+\./.test(protocolVersion ?? "")) return;
  refuse("body.protocolVersion", `The server speaks AG-UI ${PROTOCOL_VERSION}; use @ag-ui/client 1.`);
}

/** The answers of the user, by question. */
export function answersOf({ resume: given }: RunInput): readonly QuestionAnswer[] {
  return (given ?? []).map((one) => {
    const { approved, reason } = one.status === "resolved" ? one.payload : { approved: false };
    return { question: one.interruptId, approve: approved, ...(reason !== undefined && !approved && { reason }) };
  });
}

/** Something that a user says. */
export interface UserInput {
  readonly id: string;
  readonly content: Content;
}

/**
 * The user's messages after the last one that is in the log. If there are none, the last one is answered again.
 * Messages of other roles are taken from the log only, never from the client. @throws {HttpError} `INVALID_REQUEST`.
 */
export function newUserInput({ messages, resume }: RunInput, turns: readonly ShownTurn[]): readonly UserInput[] {
  const said = new Map(turns.flatMap(({ role, turnId }) => (role === "user" ? [[messageIdOf(turnId), turnId]] : [])));
  const last = messages.findLastIndex((message) => message.role === "user" && said.has(message.id as string));
  const asked = messages[last]?.id as string;
  const isLast = last !== -1 && last === messages.length - 1;
  const again = isLast && said.get(asked) === inputIdOf(asked) && (resume ?? []).length === 0;
  return [...messages.entries()].flatMap(([index, message]) =>
    message.role === "user" && index > (again ? last - 1 : last)
      ? [userInputOf(message, `body.messages.${index}`)]
      : [],
  );
}

function userInputOf({ id: given, content }: JsonObject, at: string): UserInput {
  if (typeof given !== "string" || given === "" || given.length > 400)
    refuse(`${at}.id`, "A message has an id of 1 to 400 characters.");
  if (content === "" || (Array.isArray(content) && content.length === 0)) refuse(at, "The message is empty.");
  if (typeof content === "string") return { id: given, content };
  if (!Array.isArray(content)) return refuse(`${at}.content`, "A message is a text or a list of parts.");
  return { id: given, content: content.map((part, index) => partOf(part as JsonObject, `${at}.content.${index}`)) };
}

function partOf(part: JsonObject | null, at: string): ContentPart {
  const { type, text, source, metadata } = part ?? {};
  if (type === "text" && typeof text === "string") return { type, text };
  const { type: from, value: data, mimeType: mediaType } = (source ?? {}) as JsonObject;
  if (typeof data !== "string" || typeof mediaType !== "string" || (from !== "data" && from !== "url")) {
    return refuse(at, "A part is a text, or a picture or document that comes with its data or its URL.");
  }
  const { filename: name } = (metadata ?? {}) as JsonObject;
  return {
    type: type === "image" ? "image" : "file",
    mediaType,
    ...(from === "data" ? { data } : fileSource(data, at)),
    ...(typeof name === "string" && { name }),
  };
}
