import { afterEach, describe, expect, test, vi } from "vitest";
import { sessionConfigFromEnvironment } from "./config-from-environment.ts";
import { SESSION_CONFIG_DEFAULTS, type SessionConfig } from "./session-config.ts";

afterEach(() => {
  vi.unstubAllEnvs();
});

describe("the session config of the environment", () => {
  test("is the default if no variable is set", () => {
    expect(sessionConfigFromEnvironment("SKEIN_UNSET_")).toEqual(SESSION_CONFIG_DEFAULTS);
  });

  test("reads every field from the variable of its name", () => {
    const variables: Record<string, string> = {
      SKEIN_ENABLED: "false",
      SKEIN_DEFAULT_SYSTEM_PROMPT: "be kind",
      SKEIN_SESSION_TTL: "60",
      SKEIN_CLEANUP_INTERVAL: "5",
      SKEIN_MAX_TURNS_PER_SESSION: "1",
      SKEIN_MAX_SESSIONS_PER_USER: "2",
      SKEIN_VARIABLES_BYTES_MAX: "1024",
      SKEIN_AUTO_CHECKPOINT_INTERVAL: "3",
      SKEIN_MAX_CHECKPOINTS_PER_SESSION: "4",
      SKEIN_MAX_BRANCHES_PER_SESSION: "0",
      SKEIN_MAX_AGENTS_PER_GROUP: "6",
      SKEIN_DEFAULT_TURN_STRATEGY: "topic",
      SKEIN_STORE: "sqlite:./skein.db",
      SKEIN_COOKIE_NAME: "id",
      SKEIN_HEADER_NAME: "X-Id",
      SKEIN_CONSOLIDATE_ON_CLOSE: "0",
    };
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
    const config = sessionConfigFromEnvironment();
    expect(config).toEqual({
      enabled: false,
      defaultSystemPrompt: "be kind",
      sessionTtl: 60,
      cleanupInterval: 5,
      maxTurnsPerSession: 1,
      maxSessionsPerUser: 2,
      variablesBytesMax: 1024,
      autoCheckpointInterval: 3,
      maxCheckpointsPerSession: 4,
      maxBranchesPerSession: 0,
      maxAgentsPerGroup: 6,
      defaultTurnStrategy: "topic",
      store: "sqlite:./skein.db",
      cookieName: "id",
      headerName: "X-Id",
      consolidateOnClose: false,
    });
    expect(Object.isFrozen(config)).toBe(true);
  });

  test("accepts another prefix", () => {
    vi.stubEnv("SKEIN_SESSION_TTL", "1");
    vi.stubEnv("DESK_SESSION_TTL", "2");
    expect(sessionConfigFromEnvironment("DESK_").sessionTtl).toBe(2);
  });

  test.for<{ name: string; value: string; field: keyof SessionConfig; expected: unknown }>([
    { name: "COOKIE_NAME", value: "null", field: "cookieName", expected: null },
    { name: "AUTO_CHECKPOINT_INTERVAL", value: "null", field: "autoCheckpointInterval", expected: null },
    { name: "DEFAULT_SYSTEM_PROMPT", value: "null", field: "defaultSystemPrompt", expected: null },
    { name: "HEADER_NAME", value: "null", field: "headerName", expected: "null" },
    { name: "STORE", value: "  ", field: "store", expected: "memory:" },
    { name: "SESSION_TTL", value: "", field: "sessionTtl", expected: 86_400 },
    { name: "SESSION_TTL", value: " 60\n", field: "sessionTtl", expected: 60 },
    { name: "ENABLED", value: "FALSE", field: "enabled", expected: false },
    { name: "CONSOLIDATE_ON_CLOSE", value: "1", field: "consolidateOnClose", expected: true },
  ])("reads $value in $name as $expected", ({ name, value, field, expected }) => {
    vi.stubEnv(`DESK_${name}`, value);
    expect(sessionConfigFromEnvironment("DESK_")[field]).toBe(expected);
  });

  test.for([
    ["SESSION_TTL", "1d"],
    ["SESSION_TTL", "-1"],
    ["SESSION_TTL", "1.5"],
    ["SESSION_TTL", "0x10"],
    ["SESSION_TTL", "1e3"],
    ["SESSION_TTL", "null"],
    ["MAX_TURNS_PER_SESSION", "0"],
    ["MAX_TURNS_PER_SESSION", "99999999999999999999"],
    ["ENABLED", "yes"],
    ["DEFAULT_TURN_STRATEGY", "random"],
    ["STORE", "skein.db"],
    ["COOKIE_NAME", "a b"],
  ] as const)("refuses %s=%s by the variable's name", ([name, value]) => {
    vi.stubEnv(`DESK_${name}`, value);
    expect(() => sessionConfigFromEnvironment("DESK_")).toThrow(
      expect.objectContaining({
        code: "INVALID_OPTION",
        message: expect.stringMatching(new RegExp(`^The environment variable DESK_${name} .*; give .*\\.$`)),
      }),
    );
  });

  test("shows the malformed value, but not the URL of a store", () => {
    vi.stubEnv("DESK_SESSION_TTL", "1d");
    expect(() => sessionConfigFromEnvironment("DESK_")).toThrow(
      'The environment variable DESK_SESSION_TTL is "1d"; give a whole number from 0 to 3153600000.',
    );
    vi.stubEnv("DESK_SESSION_TTL", "");
    vi.stubEnv("DESK_STORE", "//user:secret@host");
    expect(() => sessionConfigFromEnvironment("DESK_")).toThrow(/DESK_STORE cannot be used; give the URL of a store/);
  });

  test("refuses a prefix that is not a text", () => {
    expect(() => sessionConfigFromEnvironment(1 as never)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  });
});
