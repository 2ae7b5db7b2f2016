import { SessionError, show } from "../session/errors.ts";
import { CONFIG_RULES, problemOf } from "./session-config-rules.ts";

/** How the agents of a group take turns, where none says otherwise. */
export type TurnStrategy = "round_robin" | "priority" | "topic";

/** How sessions are kept for many users. Times are in seconds. */
export interface SessionConfig {
  /** False turns session handling off where a framework would add it to every request. */
  readonly enabled: boolean;
  /** The system prompt of a new session, or null for none. */
  readonly defaultSystemPrompt: string | null;
  /** How long a session may be idle before it expires; 0 is forever. */
  readonly sessionTtl: number;
  /** How often idle sessions are looked for. */
  readonly cleanupInterval: number;
  readonly maxTurnsPerSession: number;
  /** How many active and suspended sessions a user may have. */
  readonly maxSessionsPerUser: number;
  /** How many bytes the variables of a session may take as JSON, its system prompt included. */
  readonly variablesBytesMax: number;
  /** A checkpoint is made after every so many turns; null or 0 is never. */
  readonly autoCheckpointInterval: number | null;
  readonly maxCheckpointsPerSession: number;
  readonly maxBranchesPerSession: number;
  readonly maxAgentsPerGroup: number;
  readonly defaultTurnStrategy: TurnStrategy;
  /** The URL of the store, as `openStore` takes it. */
  readonly store: string;
  /** The cookie that holds a session's id; null sets none. */
  readonly cookieName: string | null;
  readonly headerName: string;
  /** Whether closing a session hands its turns to the consolidator. */
  readonly consolidateOnClose: boolean;
}

/** Where a program runs. */
export type DeploymentEnvironment = "development" | "test" | "staging" | "production";

/** Something about a config that does not suit an environment. */
export interface ConfigIssue {
  readonly field: keyof SessionConfig;
  /** An error loses data or breaks something; a warning is worth a look. */
  readonly level: "error" | "warning";
  readonly message: string;
}

/** The config of a program that sets nothing. */
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

/** The config of a program that gives no limits: no session expires, and sessions, turns and branches have no cap. */
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
 * A full, frozen config, with the defaults for what is not given.
 *
 * @throws {SessionError} `INVALID_OPTION` that names the first field that is not known or not valid.
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
 * What about a config does not suit the environment it is to run in; an empty list when all is well.
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
      message: "Sessions in memory are lost when the process ends; name a store that keeps them.",
    });
  }
  if (config.sessionTtl === 0 && config.maxSessionsPerUser < UNLIMITED_SESSIONS.maxSessionsPerUser) {
    issues.push({
      field: "sessionTtl",
      level: "warning",
      message: "Sessions never expire, so that a user who leaves them open reaches maxSessionsPerUser; set a time.",
    });
  }
  if (config.sessionTtl !== 0 && config.cleanupInterval > config.sessionTtl) {
    issues.push({
      field: "cleanupInterval",
      level: "warning",
      message: "Idle sessions are looked for less often than they expire; make it shorter than sessionTtl.",
    });
  }
  return issues;
}

const ENVIRONMENTS: readonly DeploymentEnvironment[] = ["development", "test", "staging", "production"];

function isField(name: string): name is keyof SessionConfig {
  return Object.hasOwn(CONFIG_RULES, name);
}
