import { SessionError, show } from "../errors.ts";
import { USAGE_FIELDS, type Usage } from "../usage.ts";

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
