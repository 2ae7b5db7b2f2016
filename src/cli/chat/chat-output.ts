import type { Approval, JsonObject, RunEvent } from "../../index.ts";

/** The output of a chat. Texts are not sanitized: the printer removes what could control a terminal. */
export type ChatOutput =
  /** The session that the next turn is appended to. */
  | { readonly type: "session-opened"; readonly sessionId: string; readonly model: string }
  /** A message of the chat itself, on one or several lines. */
  | { readonly type: "notice"; readonly text: string }
  /** Why a line or a command was refused or failed. */
  | { readonly type: "problem"; readonly text: string }
  /** An event of the current turn. */
  | { readonly type: "run-event"; readonly event: RunEvent }
  /** A question of a parked run. Answer it before the next output is requested; the run continues after its answers. */
  | { readonly type: "question"; readonly approval: Approval }
  /** The user wants to leave. */
  | { readonly type: "chat-ended" };

/** A message of the chat itself. */
export function notice(text: string): ChatOutput {
  return { type: "notice", text };
}

/** The output of a chat as a JSON object. An event of a run is printed as it is. */
export function chatJson(output: ChatOutput): JsonObject {
  return (output.type === "run-event" ? output.event : output) as JsonObject;
}
