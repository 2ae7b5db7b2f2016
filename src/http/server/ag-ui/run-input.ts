import { z } from "zod";
import type { JsonObject, JsonValue } from "../../../internal/json.ts";
import { type Content, type ContentPart, textOf } from "../../../session/message.ts";
import { messageIdOf } from "../../ui/message-id.ts";
import type { UITurn } from "../../ui/to-ui-messages.ts";
import type { PartAnswer } from "../chat/chat-message.ts";
import { id, json, jsonObject, list, named, refuse } from "../schema.ts";
import { PROTOCOL_VERSION } from "./ag-ui-core.ts";

const MESSAGES_MAX = 10_000;
const ANSWERS_MAX = 1000;

/** What a client of AG-UI asks for; whatever else its body holds is passed over. */
export interface RunInput {
  /** The session. */
  readonly threadId: string;
  readonly runId: string;
  readonly protocolVersion?: string | null;
  readonly messages: readonly JsonObject[];
  readonly state?: JsonValue;
  readonly resume?: readonly JsonObject[] | null;
}

/** The body of a request. */
export const runInput: z.ZodType<RunInput> = named<RunInput>(
  "RunAgentInput",
  z.looseObject({
    threadId: id,
    runId: id,
    protocolVersion: z.string().max(100).nullish(),
    messages: list(jsonObject, MESSAGES_MAX),
    state: json.optional(),
    resume: list(jsonObject, ANSWERS_MAX).nullish(),
  }),
);

/** Something that a person says. */
export interface Words {
  readonly id: string;
  readonly content: Content;
  /** Whether the log has it already. */
  readonly known: boolean;
}

/** @throws {HttpError} `INVALID_REQUEST` for a client of another major version; one before 1.0 does not say its version. */
export function checkVersion({ protocolVersion }: RunInput): void {
  const major = /^(\d+)\.\d+$/.exec(protocolVersion ?? PROTOCOL_VERSION)?.[1] ?? "1";
  if (major === "1") return;
  refuse("body.protocolVersion", `The server speaks AG-UI ${PROTOCOL_VERSION}; use @ag-ui/client 1.`);
}

/** The answers of a person, by what they answer. @throws {HttpError} `INVALID_REQUEST`. */
export function answersOf({ resume }: RunInput): readonly PartAnswer[] {
  return (resume ?? []).map(({ interruptId, status, payload }, index) => {
    const at = `body.resume.${index}`;
    if (typeof interruptId !== "string" || interruptId === "") refuse(`${at}.interruptId`, "An answer says to what.");
    if (status === "cancelled") return { question: interruptId, approve: false };
    if (status !== "resolved") refuse(`${at}.status`, "An answer is resolved or cancelled.");
    const { approved, reason, ...others } = (payload ?? {}) as JsonObject;
    // What else it says, such as other arguments, would not be done.
    if (typeof approved !== "boolean" || Object.keys(others).length > 0) {
      refuse(`${at}.payload`, "An answer is { approved: true }, or { approved: false, reason } with a reason or none.");
    }
    return { question: interruptId, approve: approved, ...(typeof reason === "string" && !approved ? { reason } : {}) };
  });
}

/**
 * What a person says: the messages of a person after the last one that the log has, as one; or that last one, where nothing
 * comes after it. Of what others said the log is the witness, not the client.
 *
 * @throws {HttpError} `INVALID_REQUEST`.
 */
export function wordsOf({ messages }: RunInput, turns: readonly UITurn[], partsMax: number): Words | null {
  const said = new Map(turns.flatMap((turn) => (turn.role === "user" ? [[messageIdOf(turn.turnId), turn]] : [])));
  const last = messages.findLastIndex((message) => message.role === "user" && said.has(message.id as string));
  const added = [...messages.entries()].filter(([index, { role }]) => index > last && role === "user");
  const contents = added.map(([index, message]) => contentOf(message, `body.messages.${index}`, partsMax));
  const latest = added.at(-1)?.[1].id as string | undefined;
  if (latest !== undefined) return { id: latest, content: together(contents), known: false };
  if (last === -1 || last < messages.length - 1) return null;
  const { id: known, ...message } = messages[last] as JsonObject & { readonly id: string };
  const content = contentOf({ id: known, ...message }, `body.messages.${last}`, partsMax);
  if (!textOf(said.get(known)?.content ?? null).endsWith(textOf(content))) {
    refuse(`body.messages.${last}`, "This was said in other words; what is changed needs an id of its own.");
  }
  return { id: known, content, known: true };
}

function together(contents: readonly Content[]): Content {
  const [only, ...others] = contents;
  if (only !== undefined && others.length === 0) return only;
  return contents.flatMap((one): readonly ContentPart[] =>
    typeof one === "string" ? [{ type: "text", text: one }] : one,
  );
}

function contentOf({ id: given, content }: JsonObject, at: string, partsMax: number): Content {
  if (typeof given !== "string" || given === "" || given.length > 400)
    refuse(`${at}.id`, "A message has an id of 1 to 400 characters.");
  if (content === "" || (Array.isArray(content) && content.length === 0)) refuse(at, "The message says nothing.");
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return refuse(`${at}.content`, "A message is a text or a list of parts.");
  if (content.length > partsMax) refuse(`${at}.content`, `This has more than ${partsMax} parts.`);
  return content.map((part, index) => partOf(part as JsonObject, `${at}.content.${index}`));
}

function partOf(part: JsonObject | null, at: string): ContentPart {
  const { type, text, source, metadata } = part ?? {};
  if (type === "text" && typeof text === "string") return { type, text };
  const { type: from, value, mimeType } = (source ?? {}) as JsonObject;
  if (from !== "data" || typeof value !== "string" || typeof mimeType !== "string") {
    return refuse(at, "A part is a text, or a picture or document that comes with its data.");
  }
  const { filename } = (metadata ?? {}) as JsonObject;
  const name = typeof filename === "string" ? { name: filename } : {};
  return { type: type === "image" ? "image" : "file", mediaType: mimeType, data: value, ...name };
}
