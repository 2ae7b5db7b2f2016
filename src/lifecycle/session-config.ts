import { SessionError, show } from "../session/errors.ts";
import { CONFIG_RULES, problemOf } from "./session-config-rules.ts";

/** The default turn strategy of groups. */
export type TurnStrategy = "round_robin" | "priority" | "topic";

/** The configuration of a session manager. Times are in seconds. */
export interface SessionConfig {
  /** False disables sessions in frameworks that would add one to every request. */
  readonly enabled: boolean;
  /** The system prompt of a new session, or null for none. */
  readonly defaultSystemPrompt: string | null;
  /** How long a session may be idle before it expires; 0 for no limit. */
  readonly sessionTtl: number;
  /** How often idle sessions are expired. */
  readonly cleanupInterval: number;
  readonly maxTurnsPerSession: number;
  /** The most active and suspended sessions of a user. */
  readonly maxSessionsPerUser: number;
  /** The most bytes of a session's variables as JSON, its system prompt included. */
  readonly variablesBytesMax: number;
  /** The number of turns after which a checkpoint is made automatically; null or 0 for never. */
  readonly autoCheckpointInterval: number | null;
  readonly maxCheckpointsPerSession: number;
  readonly maxBranchesPerSession: number;
  readonly maxAgentsPerGroup: number;
  readonly defaultTurnStrategy: TurnStrategy;
  /** The URL of the store, for `openStore`. */
  readonly store: string;
  /** The name of the cookie with the session's id; null for no cookie. */
  readonly cookieName: string | null;
  readonly headerName: string;
  /** Whether the consolidator receives the turns of closed and expired sessions. */
  readonly consolidateOnClose: boolean;
}

/** The environment in which a program runs. */
export type DeploymentEnvironment = "development" | "test" | "staging" | "production";

/** A setting that is unsuitable for an environment. */
export interface ConfigIssue {
  readonly field: keyof SessionConfig;
  /** An error loses data or breaks something; a warning should be reviewed. */
  readonly level: "error" | "warning";
  readonly message: string;
}

/** The default config. */
export const SESSION_CONFIG_DEFAULTS: SessionConfig = Object.freeze({
  enabled: true,
  defaultSystemPrompt: null,
  sessionTtl: 86_400,
  cleanupInterval: 600,
  maxTurnsPerSession: 1000,
  maxSessionsPerUser: 100,
  variablesBytesMax: 256 * 1024,
  autoCheckpointInterval: 10,
  maxCheckpointsPerSession: 50,
  maxBranchesPerSession: 10,
  maxAgentsPerGroup: 10,
  defaultTurnStrategy: "round_robin",
  store: "memory:",
  cookieName: "skein_session",
  headerName: "X-Session-ID",
  consolidateOnClose: true,
});

/** The config without limits: no session expires, and the numbers of sessions, turns and branches are not capped. */
export const UNLIMITED_SESSIONS: Pick<
  SessionConfig,
  "sessionTtl" | "maxSessionsPerUser" | "maxTurnsPerSession" | "maxBranchesPerSession"
> = Object.freeze({
  sessionTtl: 0,
  maxSessionsPerUser: Number.MAX_SAFE_INTEGER,
  maxTurnsPerSession: Number.MAX_SAFE_INTEGER,
  maxBranchesPerSession: Number.MAX_SAFE_INTEGER,
});

/**
 * Checks a config, and returns it frozen, with defaults for fields that are left out.
 *
 * @throws {SessionError} `INVALID_OPTION` that names the first unknown or invalid field.
 */
export function checkSessionConfig(partial: Partial<SessionConfig> = {}): SessionConfig {
  if (typeof partial !== "object" || partial === null || Array.isArray(partial)) {
    throw new SessionError("INVALID_OPTION", `The session config is ${show(partial)}; give an object of its fields.`);
  }
  const config: Record<string, unknown> = { ...SESSION_CONFIG_DEFAULTS };
  for (const [field, value] of Object.entries(partial)) {
    if (!isField(field)) {
      const fields = Object.keys(CONFIG_RULES).join(", ");
      throw new SessionError("INVALID_OPTION", `The session config has no field ${show(field)}; it has ${fields}.`);
    }
    if (value === undefined) continue;
    const problem = problemOf(field, value);
    if (problem !== null) throw new SessionError("INVALID_OPTION", `The session config's ${field} ${problem}.`);
    config[field] = value;
  }
  return Object.freeze(config) as unknown as SessionConfig;
}

/**
 * Finds settings that are unsuitable for the environment; an empty list if there are none.
 *
 * @throws {SessionError} `INVALID_OPTION` for an environment that is not one of the four.
 */
export function validateForEnvironment(
  config: SessionConfig,
  environment: DeploymentEnvironment,
): readonly ConfigIssue[] {
  if (!ENVIRONMENTS.includes(environment)) {
    throw new SessionError(
      "INVALID_OPTION",
      `There is no environment ${show(environment)}; use ${ENVIRONMENTS.join(", ")}.`,
    );
  }
  if (!config.enabled || environment === "development" || environment === "test") return [];
  const issues: ConfigIssue[] = [];
  if (config.store.startsWith("memory:")) {
    issues.push({
      field: "store",
      level: environment === "production" ? "error" : "warning",
      message: "Sessions in memory are lost when the process ends; use a persistent store.",
    });
  }
  if (config.sessionTtl === 0 && config.maxSessionsPerUser < UNLIMITED_SESSIONS.maxSessionsPerUser) {
    issues.push({
      field: "sessionTtl",
      level: "warning",
      message: "Sessions never expire, so a user who leaves them open reaches maxSessionsPerUser; set a time.",
    });
  }
  if (config.sessionTtl !== 0 && config.cleanupInterval > config.sessionTtl) {
    issues.push({
      field: "cleanupInterval",
      level: "warning",
      message: "Idle sessions are expired less often than sessionTtl; make cleanupInterval shorter than that.",
    });
  }
  return issues;
}

const ENVIRONMENTS: readonly DeploymentEnvironment[] = ["development", "test", "staging", "production"];

function isField(name: string): name is keyof SessionConfig {
  return Object.hasOwn(CONFIG_RULES, name);
}
