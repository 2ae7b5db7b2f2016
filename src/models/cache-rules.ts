import type { CacheRule } from "../session/context/cache-report.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
const STEPS = { tokens: 128, tokensMin: 1024 };
const STEPPED: CacheRule = { lifetimeMs: 5 * MINUTE_MS, steps: STEPS };
const STEPPED_FOR_A_DAY: CacheRule = { lifetimeMs: DAY_MS, steps: STEPS };
const AT_BREAKPOINTS: CacheRule = { lifetimeMs: 30 * MINUTE_MS, steps: null };
const COUNTED: CacheRule = { lifetimeMs: 5 * MINUTE_MS, steps: null };

/** The documented cache rules of a model's provider; for an unknown provider, only its counters are known. */
export function cacheRuleOf(provider: string, model: string): CacheRule {
  if (!/^(openai|azure)\b/.test(provider)) return COUNTED;
  if (hasBreakpoints(model)) return AT_BREAKPOINTS;
  return keepsForADay(model) ? STEPPED_FOR_A_DAY : STEPPED;
}

/** How long the provider keeps what it caches of the requests to a model, if they ask for this lifetime. */
export function cacheLifetimeOf(provider: string, model: string, lifetime: "5m" | "1h" | "24h" | undefined): number {
  if (lifetime === "1h") return 60 * MINUTE_MS;
  if (lifetime === "24h" && keepsLonger(model)) return DAY_MS;
  return cacheRuleOf(provider, model).lifetimeMs;
}

/** Whether a model of OpenAI takes cache breakpoints: gpt-5.6 and later ones. */
export function hasBreakpoints(id: string): boolean {
  const [, major, minor = "0"] = /^gpt-(\d+)(?:\.(\d+))?(?![\d.])/.exec(id) ?? [];
  return Number(major) > 5 || (major === "5" && Number(minor) >= 6);
}

/** Whether a model of OpenAI can keep its cache for a day: those before the ones with breakpoints, from gpt-4.1 on. */
export function keepsLonger(id: string): boolean {
  return /^gpt-(4\.1|5)/.test(id) && !hasBreakpoints(id);
}

/** Whether a model of OpenAI keeps its cache for a day without being asked to. */
export function keepsForADay(id: string): boolean {
  return /^gpt-5\.5/.test(id);
}
