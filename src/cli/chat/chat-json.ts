import type { JsonObject } from "../../index.ts";
import { describeThrown } from "../../agent/describe-thrown.ts";
import type { ChatOutput } from "./chat-output.ts";

/** What a chat says, as a program reads it: an event of a run stands for itself, with its error as code and message. */
export function chatJson(output: ChatOutput): JsonObject {
  if (output.type !== "run-event") return output;
  const { event } = output;
  const plain = "error" in event ? { ...event, error: errorJson(event.error) } : event;
  return plain as unknown as JsonObject;
}

function errorJson(error: unknown): JsonObject {
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null;
  return { code, message: describeThrown(error) };
}
