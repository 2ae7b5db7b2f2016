import type { JsonValue } from "../../internal/json.ts";
import type { ContentPart } from "../../session/message.ts";
import { isFields } from "./foreign-values.ts";

/** What a program calls the kinds of its parts; anything else does not get into a context as a kind. */
const KIND = /^[\w.:-]{1,60}$/;

/**
 * Stands in a message for a part that has no counterpart here: its kind, in brackets. The part itself is kept beside the
 * message, and comes out again when the session goes back to its program.
 */
export function placeholderOf(part: JsonValue | undefined): Extract<ContentPart, { type: "text" }> {
  const kind = isFields(part) ? part.type : undefined;
  return { type: "text", text: typeof kind === "string" && KIND.test(kind) ? `[${kind}]` : "[unknown part]" };
}
