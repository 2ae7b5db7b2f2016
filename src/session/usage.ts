import { checkArgument, isObject } from "./check-arguments.ts";
import { SessionError, show } from "./errors.ts";

/** A number of tokens. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  readonly cacheReadTokens?: number;
  readonly cacheWriteTokens?: number;
  readonly reasoningTokens?: number;
}

/** The counters of a usage, required ones first. */
export const USAGE_FIELDS = [
  "inputTokens",
  "outputTokens",
  "totalTokens",
  "cacheReadTokens",
  "cacheWriteTokens",
  "reasoningTokens",
] as const;

/** A usage of zero. */
export const NO_USAGE: Usage = Object.freeze({ inputTokens: 0, outputTokens: 0, totalTokens: 0 });

/** The largest sum of tokens or costs; numbers beyond it are not exact. */
const SPENT_MAX = Number.MAX_SAFE_INTEGER;

/** Adds two costs; the result is always finite. */
export function addCost(a: number, b: number | null | undefined): number {
  return Math.min(a + (b ?? 0), SPENT_MAX);
}

/** Adds two usages; an optional counter is present if one of them has it. */
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

/** Subtracts a part from a usage. */
export function withoutUsage(usage: Usage, part: Usage | null): Usage {
  if (part === null) return usage;
  const rest: Record<string, number> = {};
  for (const field of USAGE_FIELDS) {
    if (usage[field] !== undefined) rest[field] = Math.max(0, usage[field] - (part[field] ?? 0));
  }
  return Object.freeze(rest) as unknown as Usage;
}

const REQUIRED_FIELDS = 3;

/**
 * A frozen copy of a usage. @throws {SessionError} `INVALID_VALUE` if a counter is missing or is not a non-negative
 * number.
 */
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

/** Returns the cost unchanged. @throws {SessionError} `INVALID_VALUE` if it is not a non-negative number. */
export function checkCost(cost: number | null): number | null {
  if (cost === null || isAmount(cost)) return cost;
  throw new SessionError("INVALID_VALUE", `A session's cost is ${show(cost)}, which is not a number of 0 or more.`);
}

function isAmount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}
