import { checkArgument, isObject } from "../../session/check-arguments.ts";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { AssistantMessage, Message, StopReason } from "../../session/message.ts";
import type { ThinkingLevel } from "../../session/log/entry.ts";
import type { ToolChoice, ToolSchema } from "../../session/log/setup.ts";
import type { Usage } from "../../session/usage.ts";

/** A request to a model, in a provider-independent form. */
export interface ModelRequest {
  readonly messages: readonly Message[];
  readonly tools?: readonly ToolSchema[];
  readonly toolChoice?: ToolChoice;
  readonly thinkingLevel?: ThinkingLevel;
  readonly temperature?: number;
  readonly maxOutputTokens?: number;
  readonly stop?: readonly string[];
  /**
   * JSON Schema of the object that an answer without calls must be, as JSON; only for a model whose `takesOutput`
   * accepts it.
   */
  readonly output?: JsonObject;
  readonly providerOptions?: JsonValue;
  /**
   * Equal for all requests with the same beginning, such as those of one session; providers use it to find their cache.
   */
  readonly cacheKey?: string;
}

/** A model's answer, with its usage and stop reason. */
export type ModelReply = AssistantMessage;

/** A part of a streamed answer. */
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
      /**
       * The complete answer, if it has more than the deltas contain (signatures, a cost); otherwise it is assembled
       * from them.
       */
      readonly reply?: ModelReply;
    };

/**
 * A language model.
 *
 * Every model keeps these promises; `skein/testing` checks each of them:
 * - `complete` resolves to the whole answer; `stream` yields it in parts and ends with one `finish`.
 * - If a provider gives no answer, or an incomplete one, the call fails with a `ModelError` that has a `kind`. A
 *   refusal is an answer with the stop reason `content_filter`.
 * - An abort rejects immediately with the signal's reason.
 * - A model does not retry: the loop is the only layer that does.
 * - A model does not modify the request. Its messages are acceptable to every provider: each tool call has its result.
 */
export interface Model {
  readonly provider: string;
  readonly id: string;
  /** The most tokens of a request and its answer together. */
  readonly contextWindow?: number;
  /** Whether its answers have a cost. With `false`, a run with a budget in `cost` is refused. */
  readonly reportsCost?: boolean;
  /** Returns the cost of a usage in US dollars, if the model has a price; budgets of users reserve this amount before a request. */
  costOf?(usage: Usage): number | undefined;
  /**
   * True for a default that was not chosen explicitly, such as the offline model of a server without keys. It never continues a
   * session that another model has answered.
   */
  readonly unnamed?: true;
  /** Whether its provider supports structured output with this schema. If not, the run asks for a tool call instead. */
  takesOutput?(schema: JsonObject): boolean;
  /**
   * Loads what the model needs, such as its provider's client. A run awaits it before anything is stored. If it is not called, the first
   * request loads the same.
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
    'a model, such as createModel makes, or the name of one, such as "openai/gpt-5-mini"',
  );
}
