import type { AssistantMessage } from "../../session/message.ts";
import type { Model } from "../model/model.ts";

/** The default lifetime of a provider's prompt cache. */
export const CACHE_LIFETIME_MS: number = 5 * 60_000;

/**
 * Whether the provider still has the request of an answer in its cache: the answer is from this model, used a cache, and is recent.
 * `answeredAt` is in milliseconds.
 */
export function isCached(answer: AssistantMessage, answeredAt: number, model: Model): boolean {
  const { cacheReadTokens = 0, cacheWriteTokens = 0 } = answer.usage ?? {};
  if (cacheReadTokens + cacheWriteTokens === 0) return false;
  // A provider may return a longer model id than the requested one.
  const isSame = answer.model === undefined || answer.model.startsWith(model.id);
  return isSame && Date.now() - answeredAt <= CACHE_LIFETIME_MS;
}
