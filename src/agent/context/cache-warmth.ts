import type { AssistantMessage } from "../../session/message.ts";
import type { Model } from "../model/model.ts";
import { undatedName } from "../model/undated-name.ts";

/** How long a provider keeps what it cached, unless the model says otherwise. */
const CACHE_LIFETIME_MS = 5 * 60_000;

/** About how many tokens a summary and the question for it take, beside the cached request. */
export const SUMMARY_TOKENS = 4_000;

/** The time in milliseconds from which on the provider has kept what it cached for an answer. */
export function keptSince(model: Model | undefined): number {
  return Date.now() - (model?.cacheLifetimeMs ?? CACHE_LIFETIME_MS);
}

/** Whether the provider has kept what it cached for an answer; `answeredAt` is in milliseconds. */
export function isKept(answeredAt: number, model: Model | undefined): boolean {
  return answeredAt >= keptSince(model);
}

/**
 * Whether the provider still has the request of an answer in its cache: the answer is from this model, used a cache, and is recent.
 * `answeredAt` is in milliseconds.
 */
export function isCached(answer: AssistantMessage, answeredAt: number, model: Model): boolean {
  const { cacheReadTokens = 0, cacheWriteTokens = 0 } = answer.usage ?? {};
  return cacheReadTokens + cacheWriteTokens > 0 && isFromModel(answer, model) && isKept(answeredAt, model);
}

/** Whether an answer names this model, or no model. Providers return the id of a dated version for an undated one. */
export function isFromModel(answer: AssistantMessage, { id }: Pick<Model, "id">): boolean {
  return answer.model === undefined || undatedName(answer.model) === undatedName(id);
}
