import { expect, test } from "vitest";
import { importSession } from "../../src/import/import-session.ts";
import { createServer } from "../../src/http/index.ts";
import { createAgent } from "../../src/agent/agent.ts";
import { scripted } from "../../src/models/scripted.ts";
import { SessionTree } from "../../src/tree/session-tree.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";
import { registerPrices } from "../../src/models/prices.ts";
import { createHeader } from "../../src/session/log/header.ts";
import type { SessionStore } from "../../src/session/store.ts";
import { openSqliteStore } from "../../src/stores/sqlite/index.ts";
import { assistant, usage, user } from "../sample-log.ts";
import { openMemoryStore } from "../../src/stores/memory/index.ts";
import { runHere, sampleStore } from "./run-skein.ts";

registerPrices({ "acme/priced": { input: 1000, output: 0 } });

/** Imports a session of another program with an answer of this model with 1,000 tokens, as the lines of a file. */
async function importAnswer(store: SessionStore, id: string, model: string, counts = true): Promise<void> {
  const source = openMemoryStore();
  await source.create(createHeader({ id, userId: "ann" }));
  const spent = { provider: "acme", model, usage: usage(1000, 0) };
  await source.append(id, [
    { type: "message", message: user("Hello?") },
    { type: "message", message: assistant("Yes.", spent) },
  ]);
  const lines: string[] = [JSON.stringify((await source.head(id))?.header)];
  for await (const entry of source.read(id)) lines.push(JSON.stringify(entry));
  await importSession(store, lines, { counts });
}

async function fill(store: SessionStore): Promise<void> {
  await store.create(createHeader({ id: "own", userId: "ann" }));
  const own = assistant("Sure.", { provider: "acme", model: "own", usage: usage(7, 0), cost: 0.5 });
  await store.append("own", [{ type: "message", message: own }]);
  await importAnswer(store, "mine", "priced");
  await importAnswer(store, "theirs", "priced", false);
}

test("stats shows imported sessions separately, with a cost that is marked as computed", async () => {
  const store = await sampleStore(fill);
  const { stdout } = await runHere(["stats", "--by", "model", "--store", store]);
  const rows = stdout.split("\n").map((line) => line.trim().replace(/ {2,}/g, "  "));
  expect(rows).toContain("acme/own  1  1  0  7  0.5000");
  expect(rows).toContain("all  1  1  0  7  0.5000");
  expect(rows).toContain("acme/priced, imported  –  1  0  1000  ~1.0000");
  expect(rows).toContain("all, imported  –  2  0  1000  ~1.0000");
  expect(stdout).toMatch(/~ is not recorded, but computed from list prices/);
});

test("stats shows a dash for an unknown cost, and never 0.0000", async () => {
  const store = await sampleStore((made) => importAnswer(made, "mine", "unpriced"));
  const { stdout } = await runHere(["stats", "--store", store]);
  expect(stdout).toMatch(/acme\/unpriced, imported +– +1 +0 +1000 +–/);
  expect(stdout).toMatch(/^all +0 +0 +0 +0 +–$/m);
  expect(stdout).not.toContain("0.0000");
});

test("a computed cost is never stored", async () => {
  const url = await sampleStore((made) => importAnswer(made, "mine", "priced"));
  await runHere(["stats", "--store", url]);
  await using store = await openSqliteStore({ path: url.slice("sqlite:".length) });
  const costs: unknown[] = [];
  for await (const entry of store.read("mine")) {
    if (entry.type === "message" && entry.message.role === "assistant") costs.push(entry.message.cost);
  }
  expect(costs).toEqual([undefined]);
  expect((await store.head("mine"))?.cost).toBe(0);
});

test("a server returns imported sums separately, and the computed cost of a session", async () => {
  await using store = openMemoryStore();
  await fill(store);
  await importAnswer(store, "unknown", "unpriced");
  await using server = await createServer({ store });
  const get = async (path: string) => (await server.fetch(new Request(`http://127.0.0.1${path}`))).json();
  const sums = { messages: 4, toolCalls: 0, usage: usage(2000, 0), cost: 1, costComputed: true };
  expect(await get("/api/analytics")).toEqual({
    rows: [{ sessions: 1, messages: 1, toolCalls: 0, usage: usage(7, 0), cost: 0.5, imported: sums }],
  });
  expect(await get("/api/sessions/mine/analytics")).toMatchObject({ totalCost: 0, shownCost: 1, costComputed: true });
  expect(await get("/api/sessions/unknown/analytics")).toMatchObject({ shownCost: null, costComputed: false });
  expect(await get("/api/sessions/own/analytics")).toMatchObject({ shownCost: 0.5, costComputed: false });
});

test("imported usage counts against no budget", async () => {
  await using store = openMemoryStore();
  await importAnswer(store, "mine", "priced");
  const session = await (await SessionTree.on(store, "mine")).toSession();
  expect(session.usage).toBeNull();
  const agent = createAgent({ model: scripted(["Done.", "Done."]), prompt: "", tools: [], builtInTools: false });
  let crossed = 0;
  const onBudget = () => {
    crossed += 1;
    return "stop" as const;
  };
  const options = { budget: { totalTokens: 500, over: "lineage" }, onBudget } as const;
  await agent.run(session, options);
  await new SessionManager({ store }).run("mine", agent, "Go on.", options);
  expect(crossed).toBe(0);
});
