import type { ModelRequest } from "../../agent/model/model.ts";
import { fieldsOf, listOf } from "../wire/json-reader.ts";
import { hasBreakpoints, keepsLonger } from "../cache-rules.ts";
import { type CacheSetting, markedMessages } from "../wire/prompt-cache.ts";

/** The option `cache` of a model of OpenAI. */
export type OpenAICache = CacheSetting<"24h"> | null;

type Fields = Readonly<Record<string, unknown>>;

/** Whether an endpoint is one of OpenAI: others may refuse fields that they do not know. */
export function isOpenAIHost(baseURL: string | undefined): boolean {
  const host = baseURL === undefined ? "api.openai.com" : URL.canParse(baseURL) ? new URL(baseURL).hostname : "";
  return /(^|\.)openai\.(com|azure\.com)$/.test(host);
}

/** Whether requests to that endpoint name their prompt cache: to others than OpenAI's, only if the caller says so. */
export function usesCache(cache: OpenAICache, baseURL: string | undefined): cache is NonNullable<OpenAICache> {
  return cache !== null && (cache.given || isOpenAIHost(baseURL));
}

/** The body fields that name the prompt cache of a request and say how long it is kept. */
export function cacheFields(id: string, { cacheKey }: ModelRequest, cache: NonNullable<OpenAICache>): Fields {
  const keepsForADay = cache.lifetime === "24h" && keepsLonger(id);
  return {
    ...(cacheKey === undefined ? {} : { prompt_cache_key: cacheKey }),
    ...(keepsForADay ? { prompt_cache_retention: "24h" } : {}),
  };
}

/**
 * Sets explicit cache breakpoints for the families that have them: at the end of the instructions, of the last message,
 * and where the previous request ended. These families look for cached prefixes at breakpoints only. `items` may
 * contain items without a role, which cannot be marked.
 */
export function markItems(id: string, items: readonly Fields[], textType: "text" | "input_text"): Fields[] {
  if (!hasBreakpoints(id)) return [...items];
  const roleOf = (item: Fields): string => {
    if (item["type"] === "function_call_output") return "tool";
    return typeof item["role"] === "string" ? item["role"] : "assistant";
  };
  const roles = items.map(roleOf);
  const { last, before } = markedMessages(roles);
  const first = roles.findIndex((role) => role !== "system") - 1;
  const ends = new Set([roles[0] === "system" ? (first < 0 ? roles.length - 1 : first) : -1, before, last]);
  return items.map((item, index) => {
    if (roles[index] === "assistant") return item;
    const name = item["type"] === "function_call_output" ? "output" : "content";
    // Always as parts: a content that turns from a text into parts when its mark moves would not be the same bytes.
    const parts = partsOf(item[name], textType);
    return parts.length === 0 ? item : { ...item, [name]: ends.has(index) ? marked(parts) : parts };
  });
}

function partsOf(content: unknown, type: "text" | "input_text"): Fields[] {
  if (typeof content === "string") return content === "" ? [] : [{ type, text: content }];
  return listOf(content).map(fieldsOf);
}

function marked(parts: readonly Fields[]): Fields[] {
  return parts.map((part, index) => {
    return index < parts.length - 1 ? part : { ...part, prompt_cache_breakpoint: { mode: "explicit" } };
  });
}
