import { show } from "../session/errors.ts";
import type { SessionConfig } from "./session-config.ts";

/** The allowed values of a config field. */
export interface ConfigRule {
  readonly kind: "flag" | "count" | "text";
  readonly nullable?: true;
  /** The smallest and the largest count. */
  readonly range?: readonly [least: number, most: number];
  /** The pattern for a text, and its description for error messages. */
  readonly pattern?: readonly [pattern: RegExp, expectation: string];
  /** Error messages must not show the value, which may contain a password. */
  readonly hidden?: true;
}

// A hundred years: the year of the expiry cutoff still has four digits.
const TTL_SECONDS_MAX = 3_153_600_000;
// The longest delay of a timer; a longer one would fire immediately.
const TIMER_SECONDS_MAX = 2_147_483;
const COUNT_MAX = Number.MAX_SAFE_INTEGER;

const flag: ConfigRule = { kind: "flag" };
const limit: ConfigRule = { kind: "count", range: [1, COUNT_MAX] };
// The characters that HTTP allows in the name of a header or a cookie.
const name: ConfigRule = {
  kind: "text",
  pattern: [/^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/, "a name of letters, digits and dashes"],
};

/** The allowed values of each config field. */
export const CONFIG_RULES: Readonly<Record<keyof SessionConfig, ConfigRule>> = {
  enabled: flag,
  defaultSystemPrompt: { kind: "text", nullable: true },
  sessionTtl: { kind: "count", range: [0, TTL_SECONDS_MAX] },
  cleanupInterval: { kind: "count", range: [1, TIMER_SECONDS_MAX] },
  maxTurnsPerSession: limit,
  maxSessionsPerUser: limit,
  variablesBytesMax: limit,
  autoCheckpointInterval: { kind: "count", range: [0, COUNT_MAX], nullable: true },
  maxCheckpointsPerSession: limit,
  maxBranchesPerSession: { kind: "count", range: [0, COUNT_MAX] },
  maxAgentsPerGroup: limit,
  defaultTurnStrategy: {
    kind: "text",
    pattern: [/^(?:round_robin|priority|topic)$/, '"round_robin", "priority" or "topic"'],
  },
  store: {
    kind: "text",
    pattern: [/^[a-z][a-z0-9+.-]*:/, "the URL of a store, such as sqlite:./skein.db"],
    hidden: true,
  },
  cookieName: { ...name, nullable: true },
  headerName: name,
  consolidateOnClose: flag,
};

/** The error in a field's value, as the end of a sentence; null if it is valid. */
export function problemOf(field: keyof SessionConfig, value: unknown): string | null {
  const rule = CONFIG_RULES[field];
  if (isAllowed(rule, value)) return null;
  const found = rule.hidden === true ? "cannot be used" : `is ${show(value)}`;
  return `${found}; give ${expectationOf(rule)}${rule.nullable === true ? ", or null" : ""}`;
}

function isAllowed({ kind, nullable, range, pattern }: ConfigRule, value: unknown): boolean {
  if (value === null) return nullable === true;
  switch (kind) {
    case "flag":
      return typeof value === "boolean";
    case "text":
      return typeof value === "string" && (pattern === undefined || pattern[0].test(value));
    case "count": {
      const [least, most] = range ?? [0, COUNT_MAX];
      return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
    }
  }
}

function expectationOf({ kind, range, pattern }: ConfigRule): string {
  if (kind === "flag") return "true or false";
  if (kind === "text") return pattern?.[1] ?? "a text";
  const [least, most] = range ?? [0, COUNT_MAX];
  return most === COUNT_MAX ? `a whole number of ${least} or more` : `a whole number from ${least} to ${most}`;
}
