import type { UIMessage } from "./ui/ai-sdk.ts";
import type { JsonObject } from "../internal/json.ts";

/* The messages between `useChat` of the AI SDK and the server. */

/** The header that names the run of a stream, percent-encoded. */
export const RUN_HEADER = "x-skein-run";

/** A request for an answer, as the AI SDK's own transport sends it; unknown fields of the body are ignored. */
export interface ChatRequest {
  /** The id of the chat, which is the id of its session. */
  readonly id: string;
  /** Only the last message is used: a user's message, or a message of the model with calls that were approved or denied. */
  readonly messages: readonly JsonObject[];
  /** `regenerate-message`: answer again, on a new branch. */
  readonly trigger?: "submit-message" | "regenerate-message";
  /** The user's message that the last one replaces, or the model's message that is continued. */
  readonly messageId?: string;
  /** The agent that answers (default: the first agent of the server), and its model. */
  readonly agent?: string;
  readonly model?: string;
}

/** Names the run of a chat to stop (default: the one that is running, else the first in the queue). */
export interface StopChat {
  readonly runId?: string;
}

/** The messages of a chat. */
export interface ChatView {
  readonly id: string;
  readonly messages: readonly UIMessage[];
}

/** The entry whose branch the chat continues on: one of `siblings` in the metadata of a message. */
export interface SelectBranch {
  readonly entryId: string;
}
