import { checkOptionsOf, type KeysOf } from "../../session/check-arguments.ts";
import type { Model, ModelRequest } from "../../agent/model/model.ts";
import type { JsonObject } from "../../internal/json.ts";
import type { ThinkingLevel } from "../../session/log/entry.ts";
import { SessionError, show } from "../../session/errors.ts";
import { loadPricesOfEnvironment } from "../price-list.ts";
import { checkPrice, costOf, type ModelPrice, priceOf } from "../prices.ts";
import { type Call, startCall } from "../wire/call.ts";
import { cacheSetting } from "../wire/prompt-cache.ts";
import { aiSdkFailure } from "./ai-sdk-failure.ts";
import { contextWindowOf } from "../context-windows.ts";
import { withCache } from "./cache-options.ts";
import { callOptions, sharedSchema } from "./call-options.ts";
import type { CallOptions, LanguageModel, StreamPart } from "./contract.ts";
import { lookUp } from "./look-up.ts";
import { replyOf } from "./reply-of.ts";
import { StreamReader } from "./stream-reader.ts";

/** A language model of the AI SDK, as a provider package returns it for a model id. */
export interface AiSdkModel {
  readonly specificationVersion: "v2" | "v3";
  readonly provider: string;
  readonly modelId: string;
  doGenerate(options: never): PromiseLike<object>;
  doStream(options: never): PromiseLike<object>;
}

/** Options of `aiSdk`. */
export interface AiSdkOptions {
  /** Maximum tokens of a request (default: the known context window of the model). */
  readonly contextWindow?: number;
  /** The price of a million tokens (default: the price in the table). */
  readonly prices?: ModelPrice;
  /**
   * Whether requests to Anthropic and OpenAI have cache markers and keys, and how long cached prefixes are kept
   * (default: the provider's own). Anthropic supports `"5m"` and `"1h"`, some models of OpenAI `"24h"`.
   */
  readonly cache?: boolean | { readonly lifetime?: "5m" | "1h" | "24h" };
  /** Maps a thinking level to provider options. Without it, thinking levels are ignored. */
  readonly thinking?: (level: ThinkingLevel) => JsonObject | undefined;
}

/**
 * Adapts any language model of the AI SDK (versions 2 and 3 of its model contract).
 *
 * @throws {SessionError} `INVALID_OPTION` if the value is not such a model.
 */
export function aiSdk(model: AiSdkModel, options: AiSdkOptions = {}): Model {
  checkOptionsOf(
    options,
    { contextWindow: true, prices: true, cache: true, thinking: true } satisfies KeysOf<AiSdkOptions>,
    "aiSdk",
  );
  const sdk = checkModel(model);
  const { provider, modelId: id } = sdk;
  const { contextWindow = lookUp(contextWindowOf, provider, id), prices, thinking } = options;
  if (prices !== undefined) checkPrice(prices, `${provider}/${id}`);
  loadPricesOfEnvironment();
  const cache = cacheSetting(options.cache, ["5m", "1h", "24h"], "aiSdk");
  const optionsFor = (request: ModelRequest, call: Call): CallOptions => {
    const { thinkingLevel } = request;
    const extra = thinkingLevel === undefined ? undefined : thinking?.(thinkingLevel);
    return withCache(callOptions(request, sdk, call.signal, extra), sdk, request.cacheKey, cache);
  };
  return {
    provider,
    id,
    ...(contextWindow === undefined ? {} : { contextWindow }),
    get reportsCost() {
      return (prices ?? lookUp(priceOf, provider, id)) !== undefined;
    },
    costOf: (usage) => costOf(usage, prices ?? lookUp(priceOf, provider, id)),
    takesOutput: (schema) => sdk.supportsStructuredOutputs !== false && sharedSchema(schema) !== null,
    async complete(request, { signal } = {}) {
      const call = startCall({ provider, signal, timeoutMs: undefined });
      try {
        const generated = await call.wait(sdk.doGenerate(optionsFor(request, call)));
        return replyOf(generated, sdk, prices);
      } catch (error) {
        throw signal?.aborted ? signal.reason : aiSdkFailure(error, provider);
      } finally {
        call.end();
      }
    },
    async *stream(request, { signal } = {}) {
      const call = startCall({ provider, signal, timeoutMs: undefined });
      let pieces: ReadableStreamDefaultReader<StreamPart> | undefined;
      try {
        const { stream } = await call.wait(sdk.doStream(optionsFor(request, call)));
        pieces = stream.getReader();
        const reader = new StreamReader(provider);
        for (;;) {
          const { done, value } = await call.wait(pieces.read());
          if (done) break;
          for (const delta of reader.read(value)) {
            yield delta;
            signal?.throwIfAborted();
          }
        }
        const reply = replyOf(reader.finish(), sdk, prices);
        const { stopReason = "stop", usage } = reply;
        yield { type: "finish", stopReason, ...(usage === undefined ? {} : { usage }), reply };
      } catch (error) {
        throw signal?.aborted ? signal.reason : aiSdkFailure(error, provider);
      } finally {
        call.end();
        // Cancel explicitly: some streams ignore the signal.
        pieces?.cancel().catch(() => {});
      }
    },
  };
}

function checkModel(model: AiSdkModel): LanguageModel {
  const given: Partial<AiSdkModel> | null | undefined = model;
  if (typeof given?.doGenerate !== "function" || typeof given.doStream !== "function") {
    throw new SessionError(
      "INVALID_OPTION",
      `aiSdk needs a language model object of an AI SDK provider package, not ${show(model)}.`,
    );
  }
  if (given.specificationVersion !== "v2" && given.specificationVersion !== "v3") {
    throw new SessionError(
      "INVALID_OPTION",
      `The AI SDK model ${show(given.modelId)} follows version ${show(given.specificationVersion)} of the model contract; aiSdk supports "v2" and "v3".`,
    );
  }
  return model as unknown as LanguageModel;
}
