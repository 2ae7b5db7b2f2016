import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { LOOP_KEYS } from "../src/agent/loop-options.ts";
import { createServer } from "../src/http/index.ts";
import { createAgent, defineTool, openManager, SessionError } from "../src/index.ts";
import { MANAGER_ARGUMENTS, RUN } from "../src/lifecycle/manager-arguments.ts";
import type { SessionManager } from "../src/lifecycle/session-manager.ts";
import { offline } from "../src/models/index.ts";
import { inProcessQueue, startWorker } from "../src/workers/index.ts";

const WRONG: readonly unknown[] = [
  null,
  42,
  -1,
  0.5,
  "wrong",
  "",
  true,
  {},
  { wrong: 1 },
  [],
  [null],
  ["wrong"],
  () => "wrong",
];

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "options-"));
  vi.stubEnv("SKEIN_HOME", directory);
  vi.spyOn(process, "cwd").mockReturnValue(directory);
});
afterEach(async () => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  await rm(directory, { recursive: true, force: true });
});

const init = { name: "helper", prompt: "You help.", model: offline(), builtInTools: false };
const agent = createAgent(init);
const tool = { name: "find", description: "Finds.", parameters: { type: "object" }, execute: () => "found" };

/** Awaits the result of a call, and closes it. */
async function settle(value: unknown): Promise<void> {
  const given = (await value) as { close?: () => unknown; [Symbol.asyncDispose]?: () => unknown } | undefined;
  await given?.[Symbol.asyncDispose]?.();
}

/** The errors that are none of ours, of a call with each wrong value of each option. */
async function bareErrors(
  keys: readonly string[],
  call: (options: Record<string, unknown>) => unknown,
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const key of keys) {
    for (const value of WRONG) {
      try {
        await settle(call({ [key]: value }));
      } catch (error) {
        if (error instanceof SessionError) continue;
        found.push(`${key}: ${typeof value === "function" ? "function" : JSON.stringify(value)}: ${String(error)}`);
      }
    }
  }
  return found;
}

const managed = () => openManager({ store: "memory:" });

test("every method of a manager answers a wrong value of an option with a result or one of our errors", async () => {
  const found: string[] = [];
  for (const [name, keys] of Object.entries(MANAGER_ARGUMENTS)) {
    for (const [index, known] of keys.entries()) {
      if (known === null) continue;
      const errors = await bareErrors(Object.keys(known), async (options) => {
        await using manager = await managed();
        const { sessionId } = await manager.create({ userId: "local", id: "s" });
        const values: unknown[] = keys.map((_, position) => (position === index ? options : undefined));
        if (keys[0] === null) values[0] = sessionId;
        if (name === "recover") values[1] = { helper: agent };
        const method = manager[name as keyof SessionManager] as (...values: unknown[]) => unknown;
        await method.apply(manager, values);
      });
      found.push(...errors.map((error) => `${name}: ${error}`));
    }
  }
  expect(found).toEqual([]);
});

test.for<[string, readonly string[], (options: object) => unknown]>([
  ["agent.run", Object.keys(LOOP_KEYS), (options) => agent.run("Hi.", options)],
  ["manager.run in a new session", Object.keys(RUN), async (options) => (await managed()).run(agent, "Hi.", options)],
  [
    "manager.run in a session",
    Object.keys(RUN),
    async (options) => {
      const manager = await managed();
      return manager.run((await manager.create({ userId: "local" })).sessionId, agent, "Hi.", options);
    },
  ],
  [
    "createAgent",
    ["name", "prompt", "model", "tools", ...Object.keys(LOOP_KEYS)],
    (own) => createAgent({ ...init, ...own }).run("Hi."),
  ],
  [
    "defineTool",
    ["name", "description", "parameters", "execute", "needsApproval", "effects", "idempotent"],
    (own) => defineTool({ ...tool, ...own }),
  ],
  [
    "openManager",
    ["store", "workspace", "userId", "config", "create", "clock", "onError"],
    (own) => openManager({ store: "memory:", ...own }),
  ],
  [
    "createServer",
    [
      "manager",
      "store",
      "agents",
      "groups",
      "models",
      "place",
      "ask",
      "park",
      "host",
      "port",
      "limits",
      "tokens",
      "queue",
      "webhook",
      "allowedOrigins",
    ],
    async (own) => createServer({ manager: await managed(), agents: [agent], ...own }),
  ],
  [
    "startWorker",
    [
      "manager",
      "agents",
      "groups",
      "models",
      "place",
      "ask",
      "park",
      "name",
      "concurrency",
      "leaseMs",
      "sweepMs",
      "webhook",
    ],
    async (own) => startWorker({ manager: await managed(), agents: [agent], queue: inProcessQueue(), ...own }),
  ],
])("%s answers a wrong value of an option with a result or one of our errors", async ([, keys, call]) => {
  expect(await bareErrors(keys, call)).toEqual([]);
});
