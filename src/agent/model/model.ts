import { checkArgument, isObject } from "../../session/check-arguments.ts";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { AssistantMessage, Message, StopReason } from "../../session/message.ts";
import type { ThinkingLevel } from "../../session/log/entry.ts";
import type { ToolChoice, ToolSchema } from "../../session/log/setup.ts";
import type { Usage } from "../../session/usage.ts";

/** What a model is asked, in no provider's dialect. */
export interface ModelRequest {
  readonly messages: readonly Message[];
  readonly tools?: readonly ToolSchema[];
  readonly toolChoice?: ToolChoice;
  readonly thinkingLevel?: ThinkingLevel;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  readonly stop?: readonly string[];
  /** JSON Schema of the object that an answer without calls is to be, as JSON; only for a model that `takesOutput` of it. */
  readonly output?: JsonObject;
  readonly providerOptions?: JsonValue;
  /** The same for all requests that begin alike, such as those of one session: providers find their caches by it. */
  readonly cacheKey?: string;
}

/** A model's answer, with what it spent and why it stopped. */
export type ModelReply = AssistantMessage;

/** A piece of an answer that is still being written. */
export type ModelDelta =
  | { readonly type: "text-delta" | "thinking-delta"; readonly text: string }
  | {
      readonly type: "tool-call-delta";
      readonly index: number;
      readonly id?: string;
      readonly name?: string;
      readonly arguments?: string;
    }
  | {
      readonly type: "finish";
      readonly stopReason: StopReason;
      readonly usage?: Usage;
      /** The whole answer, where it holds more than the deltas show (signatures, a cost); else they are put together. */
      readonly reply?: ModelReply;
    };

/**
 * Answers requests.
 *
 * Every model keeps these promises; `skein/testing` checks each of them:
 * - `complete` resolves to the whole answer; `stream` yields it piece by piece and ends with one `finish`.
 * - A provider that gives no answer, or half of one, is a `ModelError` with a `kind`; a refusal is an answer, with the
 *   stop reason `content_filter`.
 * - An abort rejects at once with the signal's reason.
 * - Nothing is tried twice: the loop is the one layer that retries.
 * - The request is never changed. Its messages are acceptable to every provider: each tool call has its result.
 */
export interface Model {
  readonly provider: string;
  readonly id: string;
  /** How many tokens a request and its answer may take together. */
  readonly contextWindow?: number;
  /** Whether its answers come with a cost; of a model that says no, a run with a budget in `cost` is refused. */
  readonly tellsCost?: boolean;
  /** Nobody named it, as the offline model of a server without keys: it goes on in no session that another has answered. */
  readonly unnamed?: true;
  /** Whether its provider can be asked for a value of that schema; of one that cannot, a run asks for a call instead. */
  takesOutput?(schema: JsonObject): boolean;
  /**
   * Loads what the model needs to be asked, such as the client of its provider; a run waits for it before anything is
   * stored. Asking without it does the same.
   */
  prepare?(): Promise<void>;
  complete(request: ModelRequest, options?: { readonly signal?: AbortSignal }): Promise<ModelReply>;
  stream?(request: ModelRequest, options?: { readonly signal?: AbortSignal }): AsyncIterable<ModelDelta>;
}

/** @throws {SessionError} `INVALID_OPTION` that names the call, unless the value is a model. */
export function checkIsModel(model: unknown, call: string): asserts model is Model {
  checkArgument(
    isObject(model) && typeof model.complete === "function",
    model,
    call,
    "a model, such as createModel makes",
  );
}
