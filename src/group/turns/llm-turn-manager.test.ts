import { describe, expect, test } from "vitest";
import { ModelError } from "../../agent/model/model-error.ts";
import { scripted } from "../../models/scripted.ts";
import type { SessionTurn } from "../../session/state/state.ts";
import { LlmTurnManager, TURN_CHARACTERS_SHOWN_MAX, TURNS_SHOWN_MAX, findName } from "./llm-turn-manager.ts";
import type { GroupView } from "./turn-manager.ts";

const agents = [
  { name: "Ada", role: "researcher" },
  { name: "Bob", role: "critic" },
];

function turn(content: string, extras: Partial<SessionTurn> = {}): SessionTurn {
  const timestamp = "2024-01-01T00:00:00.000Z";
  return { turnId: "t", role: "user", content, timestamp, metadata: {}, tokensUsed: 0, cost: 0, ...extras };
}

function viewOf(init: Partial<GroupView> = {}): GroupView {
  return { turns: [turn("What is new?")], agents, moves: [], ...init };
}

describe("the name in an answer", () => {
  const names = ["Ada", "Bob", "Ann", "Ann Lee", "critic", "critic-2", "nobody else"];
  test.each([
    ["Ada", "Ada"],
    ["  ada\n", "Ada"],
    ['**"Ada".**', "Ada"],
    ["I think that Bob should speak, to disagree.", "Bob"],
    ["Next: ANN LEE!", "Ann Lee"],
    ["critic-2", "critic-2"],
    ["The critic-2 is next.", "critic-2"],
    ["The critic, of course", "critic"],
    ["nobody else", "nobody else"],
  ])("in %j is %s", (answer, name) => {
    expect(findName(answer, names)).toEqual({ name });
  });

  test.each(["nobody", "Nobody.", "No one needs to speak.", "None"])("in %j is no name", (answer) => {
    expect(findName(answer, names)).toBe("nobody");
  });

  test.each(["", "Adam", "Zoe", "Bob after Ada", "Annette", "critic-3", "someone"])("in %j is unclear", (answer) => {
    expect(findName(answer, names)).toBe("unclear");
  });

  test("is found among names that only differ in case, and in names with signs", () => {
    expect(findName("ada", ["Ada", "ada"])).toEqual({ name: "ada" });
    expect(findName("let a.b (1) go", ["a.b (1)", "axb (1)"])).toEqual({ name: "a.b (1)" });
  });
});

test("finds the agent that the model names, within prose", async () => {
  const model = scripted(["Bob should go on, I think."]);
  expect(await new LlmTurnManager(model).selectNext("s", viewOf())).toBe("Bob");
  expect(model.requests.length).toBe(1);
});

test("gives the model the members, the turns and the instructions", async () => {
  const model = scripted(["Ada"]);
  const manager = new LlmTurnManager(model, { instructions: "Prefer whoever has not spoken." });
  const turns = [
    turn("What is new?"),
    turn("seen", { role: "tool" }),
    turn("Not much.", { role: "assistant", agent: "Bob" }),
    turn("x".repeat(TURN_CHARACTERS_SHOWN_MAX + 1), { role: "assistant" }),
  ];
  await manager.selectNext("s", viewOf({ turns }));
  const [system, user] = (model.requests[0]?.messages ?? []).map(({ content }) => content as string);
  expect(system).toContain("- Ada (researcher)\n- Bob (critic)");
  expect(system).toContain("Prefer whoever has not spoken.");
  expect(user).toContain("user: What is new?\n\nBob: Not much.\n\nassistant: x");
  expect(user).not.toContain("seen");
  expect(user?.match(/x+…/)?.[0].length).toBe(TURN_CHARACTERS_SHOWN_MAX + 1);
});

test("shows the latest turns only", async () => {
  const model = scripted(["Ada"]);
  const turns = Array.from({ length: TURNS_SHOWN_MAX + 1 }, (_, index) => turn(`turn ${index}.`));
  await new LlmTurnManager(model).selectNext("s", viewOf({ turns }));
  const user = model.requests[0]?.messages[1]?.content as string;
  expect([user.includes("turn 0."), user.includes("turn 1.")]).toEqual([false, true]);
});

test("asks once more for a name that is not there, and then ends the conversation", async () => {
  const second = scripted(["Zoe", "Sorry: Ada"]);
  expect(await new LlmTurnManager(second).selectNext("s", viewOf())).toBe("Ada");
  const reminder = second.requests[1]?.messages.slice(2);
  expect(reminder).toMatchObject([
    { role: "assistant", content: "Zoe" },
    { role: "user", content: expect.stringContaining("Ada, Bob") },
  ]);
  const never = scripted(["", "Ada or Bob"]);
  expect(await new LlmTurnManager(never).selectNext("s", viewOf())).toBeNull();
  expect(never.requests[1]?.messages[2]).toEqual({ role: "assistant", content: "(nothing)" });
});

test("ends the conversation if the model chooses nobody, without asking again", async () => {
  const model = scripted(["nobody"]);
  expect(await new LlmTurnManager(model).selectNext("s", viewOf())).toBeNull();
  expect(model.requests.length).toBe(1);
});

test("ends after as many turns as it has rounds, without asking", async () => {
  const model = scripted([]);
  const manager = new LlmTurnManager(model, { maxRounds: 2 });
  const view = viewOf({ moves: ["Ada", "Ada"] });
  expect([await manager.selectNext("s", view), await manager.isComplete("s", view)]).toEqual([null, true]);
  expect(await manager.isComplete("s", viewOf({ moves: ["Ada"] }))).toBe(false);
  expect(await manager.selectNext("s", viewOf({ moves: ["Ada"], maxRounds: 1 }))).toBeNull();
  expect(await manager.selectNext("s", viewOf({ agents: [] }))).toBeNull();
});

test("works without a group on the recorded turns", async () => {
  const model = scripted(["Ada", "Bob"]);
  const manager = new LlmTurnManager(model, { maxRounds: 2 });
  for (const { name, role } of agents) manager.register(name, role);
  manager.recordTurns("s", [turn("What is new?")]);
  expect([await manager.selectNext("s"), await manager.selectNext("s"), await manager.selectNext("s")]).toEqual([
    "Ada",
    "Bob",
    null,
  ]);
  const said = [turn("a")];
  expect(manager.filterVisible(said, { agentName: "Ada" })).toEqual(said);
});

test("asks again after a failure that passes, and fails with any other", async () => {
  const busy = new ModelError("rate_limit", "busy", { provider: "scripted" });
  const retry = { baseDelayMs: 0, delayMaxMs: 0 };
  expect(await new LlmTurnManager(scripted([busy, "Ada"]), { retry }).selectNext("s", viewOf())).toBe("Ada");
  const broken = new Error("broken");
  await expect(new LlmTurnManager(scripted([broken]), { retry }).selectNext("s", viewOf())).rejects.toBe(broken);
});

test("stops asking when the answer is no longer needed", async () => {
  const controller = new AbortController();
  const model = scripted([() => new Promise<string>(() => controller.abort(new Error("enough")))]);
  const choosing = new LlmTurnManager(model).selectNext("s", viewOf({ signal: controller.signal }));
  await expect(choosing).rejects.toThrow("enough");
});

test("refuses to be made without a model, or with limits and instructions that are none", () => {
  expect(() => new LlmTurnManager({} as never)).toThrow(expect.objectContaining({ code: "INVALID_OPTION" }));
  for (const options of [{ maxRounds: 0 }, { instructions: 1 as never }]) {
    expect(() => new LlmTurnManager(scripted([]), options)).toThrow(
      expect.objectContaining({ code: "INVALID_OPTION" }),
    );
  }
});
