import { describe, expect, test } from "vitest";
import {
  checkSessionConfig,
  type DeploymentEnvironment,
  SESSION_CONFIG_DEFAULTS,
  UNLIMITED_SESSIONS,
  type SessionConfig,
  validateForEnvironment,
} from "./session-config.ts";

const refused = (partial: unknown) => () => checkSessionConfig(partial as Partial<SessionConfig>);
const refusal = (message: string | RegExp) =>
  expect.objectContaining({
    code: "INVALID_OPTION",
    message: typeof message === "string" ? message : expect.stringMatching(message),
  });

describe("a session config", () => {
  test("has a default for every field", () => {
    expect(checkSessionConfig()).toEqual({
      enabled: true,
      defaultSystemPrompt: null,
      sessionTtl: 86_400,
      cleanupInterval: 600,
      maxTurnsPerSession: 1000,
      maxSessionsPerUser: 100,
      variablesBytesMax: 262_144,
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
  });

  test("applies the given fields, is frozen, and does not change its input", () => {
    const given = { sessionTtl: 60, cookieName: null };
    const config = checkSessionConfig(given);
    expect(config).toEqual({ ...SESSION_CONFIG_DEFAULTS, sessionTtl: 60, cookieName: null });
    expect(Object.isFrozen(config)).toBe(true);
    expect(Object.isFrozen(given)).toBe(false);
    expect(checkSessionConfig(config)).toEqual(config);
  });

  test("treats an undefined field as missing", () => {
    expect(checkSessionConfig({ store: undefined } as never).store).toBe("memory:");
  });

  test.for<Partial<SessionConfig>>([
    { sessionTtl: 0 },
    { autoCheckpointInterval: 0 },
    { autoCheckpointInterval: null },
    { maxBranchesPerSession: 0 },
    { defaultSystemPrompt: "" },
    { defaultTurnStrategy: "topic" },
    { store: "postgres://host/db" },
    { headerName: "x-my_session.id" },
    { cookieName: "__Host-session" },
    { cleanupInterval: 2_147_483 },
  ])("may have %j", (partial) => {
    expect(checkSessionConfig(partial)).toEqual({ ...SESSION_CONFIG_DEFAULTS, ...partial });
  });

  test.for([
    { ttl: 5 },
    { constructor: 1 },
    { sessionTTL: 1 },
    { "": 1 },
    JSON.parse('{ "__proto__": { "enabled": false } }') as object,
  ])("refuses a field that it does not have: %j", (partial) => {
    const [field] = Object.keys(partial);
    expect(refused(partial)).toThrow(
      refusal(
        `The session config has no field ${JSON.stringify(field)}; it has ${Object.keys(SESSION_CONFIG_DEFAULTS).join(", ")}.`,
      ),
    );
  });

  const count = (least: number) => `give a whole number of ${least} or more.`;
  test.for<{ field: keyof SessionConfig; values: readonly unknown[]; expectation: string }>([
    { field: "enabled", values: ["true", 1, null], expectation: "give true or false." },
    { field: "consolidateOnClose", values: [0, {}], expectation: "give true or false." },
    { field: "defaultSystemPrompt", values: [1, {}, true], expectation: "give a text, or null." },
    {
      field: "sessionTtl",
      values: [-1, 1.5, "60", null, Number.NaN, 3_153_600_001],
      expectation: "give a whole number from 0 to 3153600000.",
    },
    {
      field: "cleanupInterval",
      values: [0, -5, 2_147_484],
      expectation: "give a whole number from 1 to 2147483.",
    },
    { field: "maxTurnsPerSession", values: [0, -1, 2 ** 60, Number.POSITIVE_INFINITY], expectation: count(1) },
    { field: "maxSessionsPerUser", values: [0, "3"], expectation: count(1) },
    { field: "variablesBytesMax", values: [0, "3"], expectation: count(1) },
    { field: "autoCheckpointInterval", values: [-1, 0.5], expectation: "give a whole number of 0 or more, or null." },
    { field: "maxCheckpointsPerSession", values: [0], expectation: count(1) },
    { field: "maxBranchesPerSession", values: [-1, [1]], expectation: count(0) },
    { field: "maxAgentsPerGroup", values: [0], expectation: count(1) },
    {
      field: "defaultTurnStrategy",
      values: ["random", "", null],
      expectation: 'give "round_robin", "priority" or "topic".',
    },
    {
      field: "store",
      values: ["", "memory", "./skein.db", null],
      expectation: "cannot be used; give the URL of a store, such as sqlite:./skein.db.",
    },
    {
      field: "cookieName",
      values: ["", "a b", "a;b", "a=b", "a\r\nb", "é", 1],
      expectation: "give a name of letters, digits and dashes, or null.",
    },
    {
      field: "headerName",
      values: ["", "a:b", "a\nb", null],
      expectation: "give a name of letters, digits and dashes.",
    },
  ])("refuses a wrong $field, and says what it should be", ({ field, values, expectation }) => {
    for (const value of values) {
      expect(refused({ [field]: value })).toThrow(refusal(/^The session config's .*\.$/s));
      expect(refused({ [field]: value })).toThrow(expectation);
      expect(refused({ [field]: value })).toThrow(field);
    }
  });

  test("shows no store URL in an error, because it may contain a password", () => {
    expect(refused({ store: "Postgres://user:secret@host" })).toThrow(refusal(/^(?!.*secret).*store cannot be used/));
  });

  test.for([null, [], "memory:", 1])("refuses %j in the place of an object", (given) => {
    expect(refused(given)).toThrow(refusal(/^The session config is .*; give an object of its fields\.$/));
  });
});

describe("validateForEnvironment", () => {
  const issues = (partial: Partial<SessionConfig>, environment: DeploymentEnvironment) =>
    validateForEnvironment(checkSessionConfig(partial), environment).map(({ field, level }) => [field, level]);

  test("finds one error in production with sessions in memory, with a reason", () => {
    expect(validateForEnvironment(checkSessionConfig(), "production")).toEqual([
      {
        field: "store",
        level: "error",
        message: "Sessions in memory are lost when the process ends; use a persistent store.",
      },
    ]);
  });

  test("warns of memory in staging, and not in development and test", () => {
    expect(issues({}, "staging")).toEqual([["store", "warning"]]);
    expect(issues({ sessionTtl: 0 }, "development")).toEqual([]);
    expect(issues({ sessionTtl: 0 }, "test")).toEqual([]);
  });

  test("finds nothing wrong with a durable store", () => {
    expect(issues({ store: "sqlite:./skein.db" }, "production")).toEqual([]);
  });

  test("warns of sessions that never expire, and of a sweep that is too rare", () => {
    const store = "sqlite:./skein.db";
    expect(issues({ store, sessionTtl: 0 }, "production")).toEqual([["sessionTtl", "warning"]]);
    expect(issues({ store, ...UNLIMITED_SESSIONS }, "production")).toEqual([]);
    expect(issues({ store, sessionTtl: 60, cleanupInterval: 61 }, "production")).toEqual([
      ["cleanupInterval", "warning"],
    ]);
    expect(issues({ store, sessionTtl: 60, cleanupInterval: 60 }, "production")).toEqual([]);
  });

  test("finds nothing if sessions are disabled", () => {
    expect(issues({ enabled: false }, "production")).toEqual([]);
  });

  test.for(["prod", "", undefined])("refuses the environment %j", (environment) => {
    expect(() => validateForEnvironment(checkSessionConfig(), environment as DeploymentEnvironment)).toThrow(
      refusal(/^There is no environment .*; use development, test, staging, production\.$/),
    );
  });
});
