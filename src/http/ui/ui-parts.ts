import { jsonIn, type CallState } from "../../agent/answer-reducer.ts";
import { type Attachment, type Content, partsOf, textOf } from "../../session/message.ts";
import type { JSONValue, UIMessage } from "./ai-sdk.ts";

/** A part of a message of the AI SDK. */
export type UIPart = UIMessage["parts"][number];

/** Returns the URL under which a front end can load the bytes of an image or a file. */
export type BlobUrl = (blob: string, mediaType: string) => string;

/** A message part that shows a call. */
export type UICallPart = Extract<UIPart, { type: `tool-${string}` }>;

/** The parts of a content, in their final or streaming state; empty content has none. */
export function uiPartsOf(
  content: Content | null,
  { blobUrl = (blob) => blob, ...state }: { readonly state?: "done"; readonly blobUrl?: BlobUrl } = {},
): UIPart[] {
  return partsOf(content).flatMap((part): UIPart[] => {
    if (!("text" in part)) return [fileOf(part, blobUrl)];
    if (part.text === "") return [];
    return [{ type: part.type === "text" ? "text" : "reasoning", text: part.text, ...state }];
  });
}

/**
 * The parts of the calls of one answer, in order. Calls after one that waits for approval are left out until they wait,
 * too, or have results: a front end sends its next request once every call that it shows has a result or an answer.
 */
export function callParts(calls: Iterable<CallState>): UICallPart[] {
  let waits = false;
  return [...calls].flatMap((call) => {
    const part = callPart(call);
    const left = waits && part.state === "input-available" && call.started !== true;
    waits ||= part.state === "approval-requested";
    return left ? [] : [part];
  });
}

function callPart({ id: toolCallId, name, input, question, started, result }: CallState): UICallPart {
  const part = { type: `tool-${name}`, toolCallId, input } as const;
  if (result !== undefined) return { ...part, ...outcomeOf(result, toolCallId) };
  if (question === undefined || started === true) return { ...part, state: "input-available" };
  return { ...part, state: "approval-requested", approval: { id: question } };
}

/** The result of a call; JSON is parsed, because a session stores it as text. */
function outcomeOf({ content, isError }: NonNullable<CallState["result"]>, id: string) {
  const text = textOf(content);
  const data = typeof content === "string" && /^\s*[[{]/.test(text) ? jsonIn(text) : undefined;
  if (isError !== true) return { state: "output-available", output: data ?? (content as JSONValue) } as const;
  const { error_kind: kind, message } = (data ?? {}) as { readonly error_kind?: unknown; readonly message?: unknown };
  const reason = typeof message === "string" ? message : text;
  if (kind !== "denied") return { state: "output-error", errorText: reason } as const;
  return { state: "output-denied", approval: { id, approved: false, reason } } as const;
}

function fileOf(part: Attachment, blobUrl: BlobUrl): UIPart {
  const { mediaType, name } = part;
  const url = "blob" in part ? blobUrl(part.blob, mediaType) : `data:${mediaType};base64,${part.data}`;
  const file = { type: "file", mediaType, url } as const;
  return name === undefined ? file : { ...file, filename: name };
}
