import type { AssistantMessage } from "../../session/message.ts";
import type { Model } from "../model/model.ts";

/** How long a provider keeps what it cached, unless the model says otherwise. */
const CACHE_LIFETIME_MS = 5 * 60_000;

/** About how many tokens a summary and the question for it take, beside the cached request. */
export const SUMMARY_TOKENS = 4_000;

/** Whether the provider has kept what it cached for an answer; `answeredAt` is in milliseconds. */
export function isKept(answeredAt: number, model: Model | undefined): boolean {
  return Date.now() - answeredAt <= (model?.cacheLifetimeMs ?? CACHE_LIFETIME_MS);
}

/**
 * Whether the provider still has the request of an answer in its cache: the answer is from this model, used a cache, and is recent.
 * `answeredAt` is in milliseconds.
 */
export function isCached(answer: AssistantMessage, answeredAt: number, model: Model): boolean {
  const { cacheReadTokens = 0, cacheWriteTokens = 0 } = answer.usage ?? {};
  if (cacheReadTokens + cacheWriteTokens === 0) return false;
  // A provider may return a longer model id than the requested one.
  const isSame = answer.model === undefined || answer.model.startsWith(model.id);
  return isSame && isKept(answeredAt, model);
}
