import { describe, expect, test } from "vitest";
import { assistant, SampleLog } from "../../../test/sample-log.ts";
import type { EntryDraft } from "./entry.ts";

describe("settings of a path", () => {
  const variables = (id: string, set: Record<string, string>, unset: readonly string[] = []): EntryDraft => ({
    type: "variables",
    id,
    set,
    unset,
  });

  test("variables are set and unset along the branch, and restored when the leaf moves back", () => {
    const log = new SampleLog();
    log.append([variables("a", { x: "1", y: "1" }), variables("b", { y: "2" }, ["x"])]);
    expect(log.settings().variables).toEqual({ y: "2" });
    log.append([{ type: "leaf", targetId: "a" }, variables("c", { z: "3" }, ["y"])]);
    expect(log.settings().variables).toEqual({ x: "1", z: "3" });
    log.append([{ type: "leaf", targetId: "b" }]);
    expect(log.settings().variables).toEqual({ y: "2" });
    log.append([{ type: "leaf", targetId: null }]);
    expect(log.settings().variables).toEqual({});
  });

  test("a variable that one entry unsets and sets is set", () => {
    const log = new SampleLog();
    log.append([variables("a", { x: "1" }), variables("b", { x: "2" }, ["x"])]);
    expect(log.settings().variables).toEqual({ x: "2" });
  });

  test("a variable may be named like a member of objects", () => {
    const log = new SampleLog();
    log.append([
      variables("a", { constructor: "c", toString: "t" }),
      variables("b", {}, ["hasOwnProperty", "toString"]),
    ]);
    expect(log.settings().variables).toEqual({ constructor: "c" });
  });

  test("the prompt, the tools and the skills are kept until another entry sets them", () => {
    const log = new SampleLog();
    log.append([
      { type: "variables", set: {}, unset: [], systemPrompt: "p", activeTools: ["t"], activeSkills: ["s"] },
      { type: "variables", set: { x: 1 }, unset: [] },
    ]);
    expect(log.settings()).toEqual({
      variables: { x: 1 },
      systemPrompt: "p",
      activeTools: ["t"],
      activeSkills: ["s"],
      setups: {},
    });
    log.append([{ type: "variables", set: {}, unset: [], systemPrompt: null, activeTools: [] }]);
    expect(log.settings()).toEqual({
      variables: { x: 1 },
      systemPrompt: null,
      activeTools: [],
      activeSkills: ["s"],
      setups: {},
    });
  });

  test("the last setup of each agent on the branch is found, for any name of an agent and any other fields", () => {
    const log = new SampleLog();
    const setup = (id: string, agent: string): EntryDraft => ({ type: "setup", id, agent });
    log.append([setup("a1", "a"), setup("p1", "__proto__"), setup("a2", "a"), variables("v", { x: "1" })]);
    log.append([{ type: "variables", set: {}, unset: [], setups: { a: "other" } } as EntryDraft]);
    expect(Object.entries(log.settings().setups)).toEqual([
      ["a", "a2"],
      ["__proto__", "p1"],
    ]);
    log.append([{ type: "leaf", targetId: "a1" }]);
    expect(log.settings()).toMatchObject({ variables: {}, setups: { a: "a1" } });
  });

  test("the model is the last one chosen or used", () => {
    const log = new SampleLog();
    log.append([{ type: "model_change", provider: "p", modelId: "chosen" }]);
    expect(log.head.path.model).toEqual({ provider: "p", modelId: "chosen" });
    log.say({ a: assistant("1", { provider: "q", model: "used" }) });
    expect(log.head.path.model).toEqual({ provider: "q", modelId: "used" });
    log.say({
      b: assistant("2"),
      c: assistant("3", { model: "no provider" }),
      d: assistant("4", { provider: "no model" }),
    });
    expect(log.head.path.model).toEqual({ provider: "q", modelId: "used" });
    log.append([{ type: "model_change", provider: "p", modelId: "again" }]);
    expect(log.head.path.model).toEqual({ provider: "p", modelId: "again" });
  });

  test("the thinking level is the last one set, and off before", () => {
    const log = new SampleLog();
    expect(log.head.path.thinkingLevel).toBe("off");
    log.append([
      { type: "thinking_level_change", id: "a", thinkingLevel: "high" },
      { type: "thinking_level_change", thinkingLevel: "low" },
    ]);
    expect(log.head.path.thinkingLevel).toBe("low");
    log.append([{ type: "leaf", targetId: "a" }]);
    expect(log.head.path.thinkingLevel).toBe("high");
  });
});
