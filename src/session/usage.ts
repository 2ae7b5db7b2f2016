import { checkArgument, isObject } from "./check-arguments.ts";
import { SessionError, show } from "./errors.ts";

/** Tokens that were spent. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  readonly cacheReadTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly reasoningTokens?: number;
}

/** The counters a usage may carry, the required ones first. */
export const USAGE_FIELDS = [
  "inputTokens",
  "outputTokens",
  "totalTokens",
  "cacheReadTokens",
  "cacheWriteTokens",
  "reasoningTokens",
] as const;

/** Nothing spent. */
export const NO_USAGE: Usage = Object.freeze({ inputTokens: 0, outputTokens: 0, totalTokens: 0 });

/** The most that a sum of tokens or of cost comes to: beyond it, numbers are not exact, and then not finite. */
const SPENT_MAX = Number.MAX_SAFE_INTEGER;

/** The sum of two costs, which is finite whatever they are. */
export function addCost(a: number, b: number | null | undefined): number {
  return Math.min(a + (b ?? 0), SPENT_MAX);
}

/** The sum of two usages; optional counters appear once one side has them. */
export function addUsage(a: Usage, b: Usage | undefined): Usage {
  checkArgument(isObject(a) && (b === undefined || isObject(b)), isObject(a) ? b : a, "addUsage", "two usages");
  if (b === undefined) return a;
  const sum: { -readonly [K in keyof Usage]: Usage[K] } = {
    inputTokens: Math.min(a.inputTokens + b.inputTokens, SPENT_MAX),
    outputTokens: Math.min(a.outputTokens + b.outputTokens, SPENT_MAX),
    totalTokens: Math.min(a.totalTokens + b.totalTokens, SPENT_MAX),
  };
  for (const field of ["cacheReadTokens", "cacheWriteTokens", "reasoningTokens"] as const) {
    const value = Math.min((a[field] ?? 0) + (b[field] ?? 0), SPENT_MAX);
    if (a[field] !== undefined || b[field] !== undefined) sum[field] = value;
  }
  return Object.freeze(sum);
}

/** A usage without a part of it. */
export function withoutUsage(usage: Usage, part: Usage | null): Usage {
  if (part === null) return usage;
  const rest: Record<string, number> = {};
  for (const field of USAGE_FIELDS) {
    if (usage[field] !== undefined) rest[field] = Math.max(0, usage[field] - (part[field] ?? 0));
  }
  return Object.freeze(rest) as unknown as Usage;
}

const REQUIRED_FIELDS = 3;

/** A frozen copy of a usage. @throws {SessionError} `INVALID_VALUE` when a counter is missing or not an amount. */
export function copyUsage(usage: Usage | null): Usage | null {
  if (usage === null) return null;
  const copy: Record<string, number> = {};
  for (const [index, field] of USAGE_FIELDS.entries()) {
    const value = usage[field];
    if (value === undefined && index >= REQUIRED_FIELDS) continue;
    if (!isAmount(value)) throw new SessionError("INVALID_VALUE", `A session's usage has no valid ${field}.`);
    copy[field] = value;
  }
  return Object.freeze(copy) as unknown as Usage;
}

/** The cost as it is. @throws {SessionError} `INVALID_VALUE` when it is not an amount. */
export function checkCost(cost: number | null): number | null {
  if (cost === null || isAmount(cost)) return cost;
  throw new SessionError("INVALID_VALUE", `A session's cost is ${show(cost)}, which is not a number of 0 or more.`);
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
