import type { AssistantMessage } from "../../session/message.ts";
import type { Model } from "../model/model.ts";

/** How long a provider keeps what it cached, unless a request asks for more. */
export const CACHE_LIFETIME_MS: number = 5 * 60_000;

/**
 * Whether a provider has the request of an answer in its cache: it was this model's, it used a cache, and it was not too long ago.
 * `answeredAt` is in milliseconds.
 */
export function isCached(answer: AssistantMessage, answeredAt: number, model: Model): boolean {
  const { cacheReadTokens = 0, cacheWriteTokens = 0 } = answer.usage ?? {};
  if (cacheReadTokens + cacheWriteTokens === 0) return false;
  // A provider may answer with a longer id than it was asked by.
  const isSame = answer.model === undefined || answer.model.startsWith(model.id);
  return isSame && Date.now() - answeredAt <= CACHE_LIFETIME_MS;
}
