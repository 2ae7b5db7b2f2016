import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { openStore } from "../../src/stores/open-store.ts";
import { bullmqQueue } from "../../src/workers/index.ts";
import { makeDirectory } from "../moving/sample-store.ts";
import { redisSkip, redisUrl } from "../redis-server.ts";
import { skipBecause } from "../skip.ts";
import { idle, phasesOf } from "../workers/fleet-support.ts";
import { builtProgram, runProcess } from "./run-skein.ts";

/** A module with one agent, which answers a greeting, and anything else with endless calls. */
async function agentsFile(directory: string, name: string): Promise<string> {
  const built = pathToFileURL(join(builtProgram(), "../../index.js")).href;
  const file = join(directory, "agents.mjs");
  const text = `
    import { createAgent, defineTool } from ${JSON.stringify(built)};
    const wait = defineTool({
      name: "wait",
      description: "Waits.",
      parameters: { type: "object", properties: {} },
      execute: () => new Promise((resolve) => setTimeout(() => resolve("waited"), 300)),
    });
    const model = {
      provider: "test",
      id: "worker",
      async complete({ messages }) {
        const input = messages.findLast(({ role }) => role === "user").content;
        if (input === "Hi.") return { role: "assistant", content: "Hello." };
        const toolCalls = [{ id: String(messages.length), name: "wait", arguments: "{}" }];
        return { role: "assistant", content: null, toolCalls, stopReason: "tool_calls" };
      },
    };
    export const agents = [
      createAgent({ name: ${JSON.stringify(name)}, prompt: "", model, tools: [wait], builtInTools: false }),
    ];`;
  await writeFile(file, text);
  return file;
}

/** The first line that a program prints; throws with its error output if it ends without one. */
async function firstLineOf({ stdout }: ChildProcessWithoutNullStreams, errors: () => string): Promise<string> {
  const lines = createInterface(stdout);
  const [line] = await Promise.race([once(lines, "line"), once(lines, "close")]);
  if (typeof line !== "string") throw new Error(`The worker printed nothing: ${errors()}`);
  return line;
}

test("worker executes requested runs, hands over active ones at SIGTERM, and exits with 0", async (context) => {
  if (redisSkip !== null) skipBecause(context, redisSkip);
  const directory = await makeDirectory();
  const name = `helper-${process.pid}`;
  const [storeUrl, queueUrl] = [`sqlite:${join(directory, "skein.db")}`, await redisUrl()];
  await using store = await openStore(storeUrl);
  const manager = new SessionManager({ store });
  const queue = bullmqQueue({ url: queueUrl });
  onTestFinished(() => queue.close());
  const ask = async (input: string): Promise<string> => {
    const { sessionId } = await manager.create({ userId: "ann" });
    await manager.request(sessionId, { agent: name, input });
    await queue.notify(sessionId, { runner: name });
    return sessionId;
  };
  const args = [
    "--ask",
    "never",
    "--store",
    storeUrl,
    "--trust-store",
    "--queue",
    queueUrl,
    "--agents",
    await agentsFile(directory, name),
  ];
  const child = spawn(process.execPath, [builtProgram(), "worker", "--json", "--worker-name", "one", ...args]);
  onTestFinished(() => void child.kill("SIGKILL"));
  const errors: string[] = [];
  child.stderr.on("data", (data: Buffer) => errors.push(String(data)));
  const line = await firstLineOf(child, () => errors.join(""));
  expect(JSON.parse(line)).toEqual({ name: "one", agents: [name], groups: [] });
  const ended = await ask("Hi.");
  await idle(store, ended);
  expect(await phasesOf(store, ended)).toEqual(["started", "finished"]);
  const open = await ask("Go on and on.");
  await expect.poll(() => phasesOf(store, open)).toEqual(["started"]);
  const closed = once(child, "close");
  child.kill("SIGTERM");
  expect([await closed, errors.filter((text) => !text.includes("Warning"))]).toEqual([[0, null], []]);
  expect(await phasesOf(store, open)).toEqual(["started"]);
  expect(await store.leaseOf(open)).toBeNull();
});

test("worker starts no run in an untrusted store, and prints that", async (context) => {
  if (redisSkip !== null) skipBecause(context, redisSkip);
  const directory = await makeDirectory();
  const name = `stranger-${process.pid}`;
  const [storeUrl, queueUrl] = [`sqlite:${join(directory, "skein.db")}`, await redisUrl()];
  await using store = await openStore(storeUrl);
  const manager = new SessionManager({ store });
  const { sessionId } = await manager.create({ userId: "ann" });
  await manager.request(sessionId, { agent: name, input: "Hi." });
  const queue = bullmqQueue({ url: queueUrl });
  onTestFinished(() => queue.close());
  await queue.notify(sessionId, { runner: name });
  const args = ["--store", storeUrl, "--queue", queueUrl, "--agents", await agentsFile(directory, name)];
  const work = async (...more: readonly string[]): Promise<{ readonly errors: string; stop(): Promise<void> }> => {
    const child = spawn(process.execPath, [builtProgram(), "worker", "--json", ...args, ...more]);
    onTestFinished(() => void child.kill("SIGKILL"));
    const said = { errors: "" };
    child.stderr.on("data", (data: Buffer) => {
      said.errors += String(data);
    });
    await firstLineOf(child, () => said.errors);
    const closed = once(child, "close");
    return Object.assign(said, {
      async stop() {
        child.kill("SIGTERM");
        await closed;
      },
    });
  };
  const stranger = await work();
  await stranger.stop();
  expect([await phasesOf(store, sessionId), stranger.errors]).toEqual([
    [],
    expect.stringContaining("is not listed as your own store"),
  ]);
  const trusted = await work("--trust-store");
  await queue.notify(sessionId, { runner: name });
  await idle(store, sessionId);
  await trusted.stop();
  expect(await phasesOf(store, sessionId)).toEqual(["started", "finished"]);
});

test("worker prints one sentence about invalid options, and exits with 2", async () => {
  const directory = await makeDirectory();
  const agents = await agentsFile(directory, "helper");
  const store = ["--store", `sqlite:${join(directory, "skein.db")}`];
  const whole = [...store, "--queue", "redis://127.0.0.1:1", "--agents", agents];
  const wrong: readonly (readonly [readonly string[], RegExp])[] = [
    [store, /^worker needs --queue and --agents/],
    [[...store, "--queue", "ftp://me:secret@host", "--agents", agents], /names no queue; give redis:\/\/host:6379/],
    [
      [...store, "--queue", "redis://127.0.0.1:1", "--agents", join(directory, "none.mjs")],
      /^There is no file "[^"]*none\.mjs"; name a module that exports agents\.$/m,
    ],
    [[...whole, "--concurrency", "none"], /concurrency/],
    [[...whole, "--lease", "soon"], /lease/],
  ];
  for (const [args, sentence] of wrong) {
    const { code, stderr } = await runProcess("worker", ...args);
    expect([args, code, stderr]).toEqual([args, 2, expect.stringMatching(/^[^\n]+\n$/)]);
    expect(stderr.replace(/^skein: /, "")).toMatch(sentence);
    expect(stderr).not.toContain("secret");
  }
  const { code, stderr } = await runProcess("worker", ...whole);
  expect([code, stderr]).toEqual([1, expect.stringMatching(/The queue at 127\.0\.0\.1:1 cannot be opened: [^\n]+\n$/)]);
});
