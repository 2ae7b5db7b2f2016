import type { UIMessage } from "./ui/ai-sdk.ts";
import type { JsonObject } from "../internal/json.ts";

/* What `useChat` of the AI SDK and the server say to each other. */

/** The header of a stream that says which run it tells of, percent-encoded. */
export const RUN_HEADER = "x-skein-run";

/** Asks for an answer, as the AI SDK's own transport does; whatever else its body holds is passed over. */
export interface ChatRequest {
  /** The chat, which is a session. */
  readonly id: string;
  /** The last one counts: what a person says, or an answer of a model whose calls were approved or denied. */
  readonly messages: readonly JsonObject[];
  /** `regenerate-message`: once more, on a branch of its own. */
  readonly trigger?: "submit-message" | "regenerate-message";
  /** The message of a person that the last one replaces, or the model's message that goes on. */
  readonly messageId?: string;
  /** Who answers (default: the first agent of the server), and with which model. */
  readonly agent?: string;
  readonly model?: string;
}

/** Which run of a chat is stopped (default: the one that has begun, else the first that waits). */
export interface StopChat {
  readonly runId?: string;
}

/** What a chat has come to. */
export interface ChatView {
  readonly id: string;
  readonly messages: readonly UIMessage[];
}
