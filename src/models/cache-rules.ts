import type { CacheRule } from "../session/context/cache-report.ts";

const MINUTE_MS = 60_000;
const STEPPED: CacheRule = { lifetimeMs: 5 * MINUTE_MS, steps: { tokens: 128, tokensMin: 1024 } };
const AT_BREAKPOINTS: CacheRule = { lifetimeMs: 30 * MINUTE_MS, steps: null };
const COUNTED: CacheRule = { lifetimeMs: 5 * MINUTE_MS, steps: null };

/** The documented cache rules of a model's provider; for an unknown provider, only its counters are known. */
export function cacheRuleOf(provider: string, model: string): CacheRule {
  if (!/^(openai|azure)\b/.test(provider)) return COUNTED;
  return hasBreakpoints(model) ? AT_BREAKPOINTS : STEPPED;
}

/** Whether a model of OpenAI takes cache breakpoints: gpt-5.6 and later ones. */
export function hasBreakpoints(id: string): boolean {
  const [, major, minor = "0"] = /^gpt-(\d+)(?:\.(\d+))?(?![\d.])/.exec(id) ?? [];
  return Number(major) > 5 || (major === "5" && Number(minor) >= 6);
}
