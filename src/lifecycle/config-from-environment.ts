import { SessionError, show } from "../session/errors.ts";
import type { UserBudget } from "./budgets/user-budget.ts";
import { checkSessionConfig, type SessionConfig } from "./session-config.ts";
import { CONFIG_RULES, type ConfigRule, problemOf } from "./session-config-rules.ts";

/**
 * Reads the session config from environment variables, with defaults for missing ones.
 *
 * The variable of a field is the prefix and the field's name in capitals with underscores: `sessionTtl` is `SKEIN_SESSION_TTL`,
 * `maxSessionsPerUser` is `SKEIN_MAX_SESSIONS_PER_USER`. A blank variable counts as missing. Flags are `true`, `false`, `1` or
 * `0`; numbers are decimal digits; `null` unsets a nullable field.
 *
 * @throws {SessionError} `INVALID_OPTION` that names the first variable with an invalid value.
 */
export function sessionConfigFromEnvironment(prefix = "SKEIN_"): SessionConfig {
  return checkSessionConfig(configInEnvironment(prefix));
}

/** The fields of the config that environment variables set, without defaults. */
export function configInEnvironment(prefix = "SKEIN_"): Partial<SessionConfig> {
  if (typeof prefix !== "string") {
    throw new SessionError(
      "INVALID_OPTION",
      `The prefix of the environment variables is ${show(prefix)}; give a text.`,
    );
  }
  const given: Record<string, unknown> = {};
  for (const [field, rule] of Object.entries(CONFIG_RULES) as [keyof SessionConfig, ConfigRule][]) {
    const variable = variableOf(prefix, field);
    const text = process.env[variable]?.trim() ?? "";
    if (text === "") continue;
    const value = valueOfText(rule, text);
    const problem = problemOf(field, value);
    if (problem !== null) throw new SessionError("INVALID_OPTION", `The environment variable ${variable} ${problem}.`);
    given[field] = value;
  }
  return given;
}

/**
 * The budgets of users in `SKEIN_BUDGETS`, a JSON list as in the option `budgets` of a manager; none if it is not set.
 *
 * @throws {SessionError} `INVALID_OPTION` if it is no JSON list. The manager checks the budgets in it.
 */
export function budgetsInEnvironment(): { readonly budgets?: readonly UserBudget[] } {
  const text = process.env["SKEIN_BUDGETS"]?.trim() ?? "";
  if (text === "") return {};
  const budgets = parsed(text);
  if (Array.isArray(budgets)) return { budgets };
  throw new SessionError(
    "INVALID_OPTION",
    `The environment variable SKEIN_BUDGETS is ${show(text)}; give a JSON list, such as [{"per":"user","window":"1d","cost":2}].`,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function variableOf(prefix: string, field: string): string {
  return prefix + field.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

/** Parses the text of a variable; returns the text itself if it is invalid, so that the error shows it. */
function valueOfText({ kind, nullable }: ConfigRule, text: string): unknown {
  if (nullable === true && text === "null") return null;
  if (kind === "count") return /^\d{1,16}$/.test(text) ? Number(text) : text;
  if (kind === "flag") return FLAGS.get(text.toLowerCase()) ?? text;
  return text;
}

const FLAGS: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);
