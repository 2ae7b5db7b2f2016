import type { JsonObject } from "../../index.ts";
import type { ChatOutput } from "./chat-output.ts";

/** What a chat says, as a program reads it: an event of a run stands for itself. */
export function chatJson(output: ChatOutput): JsonObject {
  return (output.type === "run-event" ? output.event : output) as JsonObject;
}
