import { describe, expect, test } from "vitest";
import { type HookResult, type SessionHooks, HookRunner } from "./hooks.ts";

const event = { sessionId: "s", fromId: null, targetId: "e" };
type Answer = HookResult | Error;

/** A runner of handlers with these results; it records calls and reports. */
function runnerOf(...answers: readonly Answer[]) {
  const called: number[] = [];
  const reported: [unknown, string][] = [];
  const hooks = answers.map((answer, index): SessionHooks => {
    const act = (): HookResult => {
      called.push(index);
      if (answer instanceof Error) throw answer;
      return answer;
    };
    return { beforeTree: index % 2 === 0 ? act : async () => act(), tree: () => void act() };
  });
  return { called, reported, runner: new HookRunner(hooks, (error, hook) => reported.push([error, hook])) };
}

describe("handlers before an operation", () => {
  test("run in order, each after the previous one is done", async () => {
    const order: string[] = [];
    const slow = async (): Promise<undefined> => {
      order.push("slow begins");
      await new Promise((resolve) => setImmediate(resolve));
      order.push("slow ends");
    };
    const fast = () => void order.push("fast");
    const runner = new HookRunner([{ beforeTree: slow, tree: slow }, {}, { beforeTree: fast, tree: fast }], () => {});
    await runner.before("beforeTree", event);
    await runner.after("tree", event);
    expect(order).toEqual(["slow begins", "slow ends", "fast", "slow begins", "slow ends", "fast"]);
  });

  test("get the event, with their own object as `this`", async () => {
    const seen: unknown[] = [];
    const hooks: SessionHooks = {
      beforeTree(given) {
        seen.push(given, this);
        return undefined;
      },
    };
    await new HookRunner([hooks], () => {}).before("beforeTree", event);
    expect(seen).toEqual([event, hooks]);
    expect(seen[1]).toBe(hooks);
  });

  test("that return nothing result in null", async () => {
    expect(await runnerOf(undefined, undefined).runner.before("beforeTree", event)).toBe(null);
    expect(await new HookRunner([], () => {}).before("beforeTree", event)).toBe(null);
  });

  test("result in the last summary", async () => {
    const { runner } = runnerOf({ summary: "first" }, { summary: "second", details: { n: 1 } }, undefined);
    expect(await runner.before("beforeTree", event)).toEqual({ summary: "second", details: { n: 1 } });
  });

  test("stop at the first cancel, even after a summary", async () => {
    const { runner, called } = runnerOf(
      { summary: "s" },
      { cancel: true, reason: "not now" },
      { cancel: true, reason: "later" },
    );
    await expect(runner.before("beforeTree", event)).rejects.toMatchObject({ name: "SessionError", code: "CANCELLED" });
    expect(called).toEqual([0, 1]);
    await expect(runnerOf({ cancel: true, reason: "not now" }).runner.before("beforeTree", event)).rejects.toThrow(
      "A beforeTree handler cancelled this: not now.",
    );
    await expect(runnerOf({ cancel: true }).runner.before("beforeTree", event)).rejects.toThrow(
      "A beforeTree handler cancelled this.",
    );
  });

  test("that throw are reported and skipped", async () => {
    const broken = new Error("broken");
    const { runner, called, reported } = runnerOf({ summary: "kept" }, broken, undefined, broken);
    expect(await runner.before("beforeTree", event)).toEqual({ summary: "kept" });
    expect(called).toEqual([0, 1, 2, 3]);
    expect(reported).toEqual([
      [broken, "beforeTree"],
      [broken, "beforeTree"],
    ]);
  });

  test.for([null, false, true, 7, "text", {}, { cancel: false }])(
    "that return %j, which has no meaning, change nothing",
    async (answer) => {
      const { runner } = runnerOf({ summary: "kept" }, answer as unknown as HookResult);
      expect(await runner.before("beforeTree", event)).toEqual({ summary: "kept" });
    },
  );
});

describe("handlers after an operation", () => {
  test("all run, in order; one that throws is reported", async () => {
    const broken = new Error("broken");
    const { runner, called, reported } = runnerOf(undefined, broken, undefined);
    await runner.after("tree", event);
    expect(called).toEqual([0, 1, 2]);
    expect(reported).toEqual([[broken, "tree"]]);
  });

  test("cannot cancel", async () => {
    const { runner, called } = runnerOf({ cancel: true }, undefined);
    await runner.after("tree", event);
    expect(called).toEqual([0, 1]);
  });
});

test("with adds handlers after the existing ones, and does not change the runner", async () => {
  const order: string[] = [];
  const hooksOf = (name: string): SessionHooks => ({ tree: () => void order.push(name) });
  const runner = new HookRunner([hooksOf("a")], () => {});
  await runner.with([hooksOf("b"), hooksOf("c")]).after("tree", event);
  await runner.after("tree", event);
  expect(order).toEqual(["a", "b", "c", "a"]);
});
