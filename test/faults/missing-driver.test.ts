import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { offeredModels } from "../../src/cli/options/offered-models.ts";
import { createServer } from "../../src/http/index.ts";
import { createAgent, openManager } from "../../src/index.ts";
import { createHeader } from "../../src/session/log/header.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { inProcessQueue, startWorker } from "../../src/workers/index.ts";
import { runHere } from "../cli/run-skein.ts";
import { makeWorkspace } from "../cli/sample-chat.ts";

/** An environment with a provider's key and without its package. */
beforeEach(() => {
  vi.doMock("openai", () => {
    throw new Error("Cannot find package");
  });
  vi.stubEnv("OPENAI_API_KEY", "k");
  vi.stubEnv("ANTHROPIC_API_KEY", "");
});
afterEach(() => {
  vi.doUnmock("openai");
  vi.unstubAllEnvs();
});

const missing = { code: "DRIVER_MISSING", message: expect.stringContaining("install the package openai, version") };
const helper = () => createAgent({ name: "helper", prompt: "You help.", model: "openai/gpt-5-mini" });

test("a server and a worker do not start without the package of an agent's model", async () => {
  await using manager = await openManager({ store: "memory:" });
  await expect(createServer({ manager, agents: [helper()] })).rejects.toMatchObject(missing);
  await expect(startWorker({ manager, agents: [helper()], queue: inProcessQueue() })).rejects.toMatchObject(missing);
});

test("chat and serve fail at their start, and store nothing", async () => {
  const workspace = await makeWorkspace();
  const path = join(workspace, "skein.db");
  await using store = await openSqliteStore({ path });
  const at = ["--workspace", workspace, "--store", `sqlite:${path}`];
  for (const args of [
    ["chat", "--model", "openai/gpt-5-mini", ...at],
    ["serve", "--port", "0", "--agent", "helper=openai/gpt-5-mini", ...at],
  ]) {
    const { code, stdout, stderr } = await runHere(args);
    expect([args[0], code, stdout, stderr]).toEqual([
      args[0],
      1,
      "",
      expect.stringContaining("install the package openai"),
    ]);
  }
  const { header } = await store.create(createHeader({ userId: "local", cwd: workspace }));
  await store.append(header.id, [
    { type: "message", message: { role: "user", content: "Hi." } },
    { type: "message", message: { role: "assistant", content: "Hello.", provider: "openai", model: "gpt-5-mini" } },
  ]);
  for (const args of [
    ["chat", header.id, ...at],
    ["compact", header.id, "--store", `sqlite:${path}`],
  ]) {
    const { code, stdout, stderr } = await runHere(args);
    expect([args[0], code, stdout + stderr]).toEqual([
      args[0],
      1,
      expect.stringContaining("install the package openai"),
    ]);
  }
  expect(await store.head(header.id)).toMatchObject({ version: 2 });
  expect(await store.count()).toBe(1);
});

test("a provider with a key but without its package is not offered, and the reason is given", async () => {
  const { models, problems } = await offeredModels();
  expect(models.map(({ provider }) => provider)).toEqual(["offline"]);
  expect(problems).toEqual([missing.message]);
});
