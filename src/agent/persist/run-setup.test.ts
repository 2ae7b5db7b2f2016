import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { callOf, calling } from "../../../test/sample-run.ts";
import { backends } from "../../../test/store-backends.ts";
import { GroupSession } from "../../group/index.ts";
import { RoundRobinTurnManager } from "../../group/turns/round-robin-turn-manager.ts";
import { SessionManager } from "../../lifecycle/session-manager.ts";
import { scripted, type ScriptedModel } from "../../models/scripted.ts";
import type { Entry, EntryOf } from "../../session/log/entry.ts";
import { createHeader } from "../../session/log/header.ts";
import type { SessionStore } from "../../session/store.ts";
import { openMemoryStore } from "../../stores/memory/index.ts";
import { createAgent, type Agent, type AgentInit } from "../agent.ts";
import { defineTool } from "../tools/define-tool.ts";
import type { Tool } from "../tools/tool.ts";

const PROMPT = "You are the clerk of a shop. Look before you pay.";

function toolCalled(name: string, description = `Does ${name}.`, extras: Partial<Tool> = {}): Tool {
  // No database would put these keys in this order by itself.
  const parameters = { type: "object", properties: { zone: { type: "string" }, a: {} }, additionalProperties: true };
  return { ...defineTool({ name, description, parameters, execute: () => `${name} done` }), ...extras };
}

function agentWith(init: Partial<AgentInit> & Pick<AgentInit, "model">): Agent {
  return createAgent({ name: "clerk", prompt: PROMPT, tools: [toolCalled("look"), toolCalled("pay")], ...init });
}

async function entriesOf(store: SessionStore, sessionId: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(sessionId)) entries.push(entry);
  return entries;
}

async function setupsOf(store: SessionStore, sessionId: string): Promise<EntryOf<"setup">[]> {
  return (await entriesOf(store, sessionId)).filter((entry) => entry.type === "setup");
}

/** The setup that each answer was asked with. */
async function askedWith(store: SessionStore, sessionId: string): Promise<(string | undefined)[]> {
  const entries = await entriesOf(store, sessionId);
  return entries.flatMap((entry) =>
    entry.type === "message" && entry.message.role === "assistant" ? [entry.setup] : [],
  );
}

describe("the setup of a run", () => {
  test("is stored once for an agent that does not change, and every answer names it", async () => {
    const store = openMemoryStore();
    const manager = new SessionManager({ store });
    const model = scripted([calling(callOf("1", "look")), "One.", "Two.", "Three."]);
    const agent = agentWith({ model, thinkingLevel: "low", temperature: 0.5 });
    const { sessionId } = await manager.run(agent, "1");
    for (const input of ["2", "3"]) await manager.run(sessionId, agent, input);
    const [setup, ...others] = await setupsOf(store, sessionId);
    expect(others).toEqual([]);
    expect(setup).toMatchObject({ agent: "clerk", instructions: PROMPT, thinkingLevel: "low", temperature: 0.5 });
    expect(setup?.tools).toEqual(model.requests[0]?.tools);
    expect(await askedWith(store, sessionId)).toEqual(Array(4).fill(setup?.id));
    const starts = (await entriesOf(store, sessionId)).filter(({ type }) => type === "run");
    expect(starts).toContainEqual(expect.objectContaining({ phase: "started", setup: setup?.id }));
  });

  test("has how long the model's provider keeps what it caches", async () => {
    const store = openMemoryStore();
    const model = { ...scripted(["One."]), cacheLifetimeMs: 3_600_000 };
    const { sessionId } = await new SessionManager({ store }).run(agentWith({ model }), "1");
    expect(await setupsOf(store, sessionId)).toMatchObject([{ cacheLifetimeMs: 3_600_000 }]);
  });

  test("contains only what has changed since the agent's last one, and refers to the entry with the rest", async () => {
    const store = openMemoryStore();
    const manager = new SessionManager({ store });
    const first = agentWith({ model: scripted(["One."]) });
    const warm = agentWith({ model: scripted(["Two."]), temperature: 1 });
    const polite = agentWith({ model: scripted(["Three."]), temperature: 1, prompt: "Be polite." });
    const other = agentWith({ name: "other", model: scripted(["Four."]) });
    const back = agentWith({ model: scripted(["Five."]), temperature: 1, prompt: "Be polite." });
    const { sessionId } = await manager.run(first, "1");
    for (const agent of [warm, polite, other, back]) await manager.run(sessionId, agent, "Next.");
    const [one, two, three, four, ...rest] = await setupsOf(store, sessionId);
    const { id } = one as EntryOf<"setup">;
    expect(two).toMatchObject({ temperature: 1, unchanged: { instructions: id, tools: id } });
    expect(two).not.toHaveProperty("tools");
    expect(three).toMatchObject({ temperature: 1, instructions: "Be polite.", unchanged: { tools: id } });
    expect(four).toMatchObject({ agent: "other", instructions: PROMPT, tools: one?.tools });
    expect(rest).toEqual([]);
    expect(await askedWith(store, sessionId)).toEqual([one, two, three, four, three].map((setup) => setup?.id));
  });

  test("depends on the branch: a run from before a change has the earlier setup", async () => {
    const store = openMemoryStore();
    const manager = new SessionManager({ store });
    const { sessionId } = await manager.run(agentWith({ model: scripted(["One."]) }), "1");
    const { leafId } = (await store.head(sessionId)) ?? {};
    await manager.run(sessionId, agentWith({ model: scripted(["Two."]), prompt: "Be polite." }), "2");
    await store.append(sessionId, [{ type: "leaf", targetId: leafId ?? null }]);
    await manager.run(sessionId, agentWith({ model: scripted(["Three."]) }), "3");
    const [one, two, ...others] = await setupsOf(store, sessionId);
    expect(others).toEqual([]);
    expect(await askedWith(store, sessionId)).toEqual([one?.id, two?.id, one?.id]);
  });

  test("has no text of instructions with recordInstructions: false, and never one of providerOptions", async () => {
    const store = openMemoryStore();
    const manager = new SessionManager({ store });
    const model = scripted(["One.", "Two."]);
    const agent = agentWith({ model, recordInstructions: false, providerOptions: { apiKey: "sk-secret" } });
    const { sessionId } = await manager.run(agent, "1");
    await manager.run(sessionId, agent, "2");
    const [setup, ...others] = await setupsOf(store, sessionId);
    expect(others).toEqual([]);
    expect(setup).toMatchObject({ instructionsDigest: expect.any(String), providerOptionsDigest: expect.any(String) });
    const text = JSON.stringify([await entriesOf(store, sessionId), await store.head(sessionId)]);
    expect(text).not.toContain("sk-secret");
    expect(text).not.toContain(PROMPT);
    expect(model.requests[1]?.messages[0]).toEqual({ role: "system", content: PROMPT });
    expect(model.requests[1]?.providerOptions).toEqual({ apiKey: "sk-secret" });
  });

  test("is stored once for each agent of a group, with a digest in place of its instructions", async () => {
    const store = openMemoryStore();
    const manager = new SessionManager({ store });
    const group = new GroupSession({ manager, turnManager: new RoundRobinTurnManager(2) });
    const names = ["ada", "bob"];
    for (const name of names)
      group.addAgent(
        agentWith({ name, prompt: `Secret of ${name}.`, model: scripted(["Yes.", "No.", "Yes.", "No."]) }),
      );
    const { sessionId } = await manager.create({ userId: "ann" });
    await group.run(sessionId, "What is it?");
    await group.run(sessionId, "And now?");
    const setups = await setupsOf(store, sessionId);
    expect(setups.map(({ agent }) => agent)).toEqual(names);
    const [ada, bob] = setups.map(({ id }) => id);
    expect(await askedWith(store, sessionId)).toEqual([ada, bob, ada, bob, ada, bob, ada, bob]);
    expect(JSON.stringify(await entriesOf(store, sessionId))).not.toContain("Secret of");
  });

  test("of an import has no effect: the agent's own is stored", async () => {
    const store = openMemoryStore();
    const manager = new SessionManager({ store });
    const { sessionId } = await manager.run(agentWith({ model: scripted(["One."]) }), "1");
    const id = "copy";
    const entries = (await entriesOf(store, sessionId)).filter(({ type }) => type !== "run");
    const inherited = { entries: entries.length, counts: false };
    await store.create(createHeader({ id, inherited }), { entries: entries.map(({ seq: _seq, ...entry }) => entry) });
    await manager.run(id, agentWith({ model: scripted(["Two."]) }), "2");
    const setups = await setupsOf(store, id);
    expect(setups).toHaveLength(2);
    expect(setups[1]).toMatchObject({ instructions: PROMPT, tools: expect.any(Array) });
    expect((await askedWith(store, id))[1]).toBe(setups[1]?.id);
  });

  test("of a fork has no effect if another user's session had it, and is shared in a fork of the same user", async () => {
    const store = openMemoryStore();
    const manager = new SessionManager({ store });
    const { sessionId } = await manager.run(agentWith({ model: scripted(["One."]) }), "1", { userId: "ann" });
    const setupsIn = async (id: string, source: string, userId: string): Promise<number> => {
      const { leafId } = (await store.head(source)) ?? {};
      await store.fork(source, createHeader({ id, userId }), { at: leafId ?? null });
      await manager.run(id, agentWith({ model: scripted(["Two."]) }), "2");
      const setups = await setupsOf(store, id);
      for (const { unchanged } of setups) expect(unchanged).toBeUndefined();
      return setups.length;
    };
    expect(await setupsIn("of-ann", sessionId, "ann")).toBe(1);
    expect(await setupsIn("of-ann-again", "of-ann", "ann")).toBe(1);
    expect(await setupsIn("of-bob", sessionId, "bob")).toBe(2);
    expect(await setupsIn("of-bob-again", "of-bob", "bob")).toBe(2);
    expect(await setupsIn("of-ann-once-more", "of-bob", "ann")).toBe(3);
  });
});

/** A run that waits for approval of its first call, and another version of the agent that recovers it. */
async function takenOver(
  store: SessionStore,
  first: Partial<AgentInit>,
  second: Partial<AgentInit>,
): Promise<{ readonly sessionId: string; readonly before: ScriptedModel; readonly after: ScriptedModel }> {
  const manager = new SessionManager({ store });
  const before = scripted([calling(callOf("1", "pay"))]);
  const after = scripted([calling(callOf("2", "look")), "Done."]);
  const pay = toolCalled("pay", "Pays.", { needsApproval: () => true });
  const parked = await manager.run(
    agentWith({ model: before, park: { afterMs: 0 }, tools: [toolCalled("look"), pay], ...first }),
    "Go.",
  );
  const { sessionId } = parked;
  await manager.approve(sessionId, parked.questions[0] as never);
  const clerk = agentWith({ model: after, tools: [toolCalled("pay"), toolCalled("walk")], ...second });
  const recovered = await manager.recover(sessionId, { clerk });
  await recovered?.run;
  return { sessionId, before, after };
}

describe.each(backends)("in a $name store, a run that another version of its agent takes over", ({ open }) => {
  test("sends the recorded instructions and tools in their order, and answers calls of a missing tool with an error", async () => {
    const directory = await mkdtemp(join(tmpdir(), "skein-setup-"));
    const store = await open(directory);
    onTestFinished(async () => {
      await store.close();
      await rm(directory, { recursive: true, force: true });
    });
    const { sessionId, before, after } = await takenOver(store, { temperature: 0 }, { prompt: "Do as you like." });
    const [sent] = before.requests;
    expect(after.requests).toHaveLength(2);
    for (const request of after.requests) {
      expect(JSON.stringify(request.tools)).toBe(JSON.stringify(sent?.tools));
      expect(JSON.stringify(request.messages.slice(0, 2))).toBe(JSON.stringify(sent?.messages));
      expect(request.temperature).toBe(0);
    }
    const results = after.requests[1]?.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
    expect(results?.[0]).toBe("pay done");
    expect(results?.[1]).toContain("unknown_tool");
    expect(await setupsOf(store, sessionId)).toHaveLength(1);
    expect(new Set(await askedWith(store, sessionId)).size).toBe(1);

    const model = scripted(["New."]);
    await new SessionManager({ store }).run(sessionId, agentWith({ model, prompt: "Do as you like." }), "Again.");
    expect(model.requests[0]?.messages[0]?.content).toBe("Do as you like.");
  });
});

describe("a run that another version of its agent takes over", () => {
  test("sends the present instructions if only a digest of the recorded ones is stored, and the recorded tools", async () => {
    const own = { recordInstructions: false };
    const second = { ...own, prompt: "Do as you like." };
    const { sessionId, before, after } = await takenOver(openMemoryStore(), own, second);
    expect(after.requests[0]?.messages[0]?.content).toBe("Do as you like.");
    expect(after.requests[0]?.tools).toEqual(before.requests[0]?.tools);
    expect(sessionId).toBeTruthy();
  });
});
