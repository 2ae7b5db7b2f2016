import { expect, test } from "vitest";
import { callOf, calling, toolOf } from "../../test/sample-run.ts";
import { GroupSession } from "../group/index.ts";
import { RoundRobinTurnManager } from "../group/turns/round-robin-turn-manager.ts";
import { SessionManager } from "../lifecycle/session-manager.ts";
import { scripted, type ScriptedModel } from "../models/scripted.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { createAgent } from "./agent.ts";

const said = (model: ScriptedModel, index: number): readonly unknown[] =>
  model.requests[index]?.messages.map(({ content }) => content) ?? [];
const reminder = (text: string): string => `Reminder from the application, not from the user:\n\n${text}`;

test("a reminder is appended after all other messages if it differs from the last one, and stays at its position", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const texts = ["Monday", "Monday", "Tuesday", null, "Tuesday"];
  const model = scripted([calling(callOf("1", "look")), calling(callOf("2", "look")), "One.", "Two.", "Three."]);
  const agent = createAgent({
    prompt: "Be brief.",
    model,
    builtInTools: false,
    tools: [toolOf("look", () => "seen")],
    reminders: () => texts.shift() ?? null,
  });
  const { sessionId } = await manager.run(agent, "Go.");
  expect(said(model, 0)).toEqual(["Be brief.", "Go.", reminder("Monday")]);
  expect(said(model, 1)).toEqual([...said(model, 0), null, "seen"]);
  expect(said(model, 2)).toEqual([...said(model, 1), null, "seen", reminder("Tuesday")]);
  for (const input of ["Next.", "Last."]) await manager.run(sessionId, agent, input);
  expect(said(model, 3)).toEqual([...said(model, 2), "One.", "Next."]);
  expect(said(model, 4)).toEqual([...said(model, 3), "Two.", "Last."]);
});

test("a reminder reaches the model of a run that is not stored", async () => {
  const model = scripted(["One."]);
  const agent = createAgent({ prompt: "Be brief.", model, builtInTools: false, reminders: () => "Monday" });
  await agent.run("Go.");
  expect(said(model, 0)).toEqual(["Be brief.", "Go.", reminder("Monday")]);
});

test("a reminder of an agent in a group is for that agent only", async () => {
  const manager = new SessionManager({ store: openMemoryStore() });
  const group = new GroupSession({ manager, turnManager: new RoundRobinTurnManager(2) });
  const models = ["ada", "bob"].map((name) => {
    const model = scripted(["Yes.", "No."]);
    group.addAgent(createAgent({ name, prompt: "", model, builtInTools: false, reminders: () => `for ${name}` }));
    return model;
  });
  const { sessionId } = await manager.create({ userId: "ann" });
  await group.run(sessionId, "What is it?");
  const [ada, bob] = models as [ScriptedModel, ScriptedModel];
  expect(said(ada, 1)).toContain(reminder("for ada"));
  expect(said(bob, 1)).toContain(reminder("for bob"));
  expect(JSON.stringify(ada.requests)).not.toContain("for bob");
  expect(JSON.stringify(bob.requests)).not.toContain("for ada");
});

test("a reminder that is not a text fails the run with a clear error", async () => {
  const agent = createAgent({ prompt: "", model: scripted(["One."]), reminders: (() => 5) as never });
  await expect(agent.run("Go.")).rejects.toMatchObject({
    code: "INVALID_OPTION",
    message: expect.stringContaining("reminders"),
  });
});
