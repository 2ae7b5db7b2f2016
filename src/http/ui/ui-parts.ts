import type { JSONValue, UIMessage } from "./ai-sdk.ts";
import type { AssistantMessage, Content, ContentPart, ToolCall, ToolMessage } from "../../session/message.ts";

/** A part of a message of the AI SDK. */
export type UIPart = UIMessage["parts"][number];

/** The parts of what was said; what is empty makes none. */
export function partsOf(content: Content | null): UIPart[] {
  if (content === null || content === "") return [];
  if (typeof content === "string") return [{ type: "text", text: content, state: "done" }];
  return content.flatMap((part): UIPart[] => {
    if (part.type === "text") return part.text === "" ? [] : [{ type: "text", text: part.text, state: "done" }];
    if (part.type === "thinking")
      return part.text === "" ? [] : [{ type: "reasoning", text: part.text, state: "done" }];
    return [fileOf(part)];
  });
}

/** The input of a call: what its arguments say, or their text where that is no JSON. */
export function inputOf({ arguments: text }: Pick<ToolCall, "arguments">): unknown {
  try {
    return JSON.parse(text === "" ? "{}" : text) as unknown;
  } catch {
    return text;
  }
}

/** How a call came out. */
export type CallOutcome =
  | { readonly state: "output-available"; readonly output: JSONValue }
  | { readonly state: "output-error"; readonly errorText: string }
  | { readonly state: "output-denied"; readonly reason: string };

/** How a call came out, by its result; data is given as data, since a session keeps it as a text. */
export function outcomeOf({ content, isError }: Pick<ToolMessage, "content" | "isError">): CallOutcome {
  const text = typeof content === "string" ? content : null;
  const data = text === null || !/^\s*[[{]/.test(text) ? null : dataOf(text);
  if (isError !== true) return { state: "output-available", output: data ?? (content as JSONValue) };
  const { error_kind: kind, message } = (data ?? {}) as { readonly error_kind?: unknown; readonly message?: unknown };
  const said = typeof message === "string" ? message : (text ?? textOfParts(content));
  return kind === "denied" ? { state: "output-denied", reason: said } : { state: "output-error", errorText: said };
}

/** The text of an answer in one piece, as it is streamed. */
export function wholeText({ content }: Pick<AssistantMessage, "content">, type: "text" | "thinking"): string {
  if (content === null || typeof content === "string") return type === "text" ? (content ?? "") : "";
  return content.map((part) => (part.type === type ? part.text : "")).join("");
}

function textOfParts(content: Content): string {
  return wholeText({ content }, "text");
}

function dataOf(text: string): JSONValue {
  try {
    return JSON.parse(text) as JSONValue;
  } catch {
    return null;
  }
}

function fileOf({ mediaType, data, name }: Extract<ContentPart, { data: string }>): UIPart {
  const file = { type: "file", mediaType, url: `data:${mediaType};base64,${data}` } as const;
  return name === undefined ? file : { ...file, filename: name };
}
