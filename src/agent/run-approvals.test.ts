import { describe, expect, test } from "vitest";
import {
  asking,
  callOf,
  calling,
  eventsOf,
  isWhole,
  nextEvent,
  resultsOf,
  someAgent,
  toolOf,
} from "../../test/sample-run.ts";
import { scripted } from "../models/scripted.ts";
import type { ToolCall } from "../session/message.ts";
import { defineTool } from "./tools/define-tool.ts";
import { runSessionLoop } from "./run-session-loop.ts";
import type { SessionRun } from "./session-run.ts";
import type { Tool } from "./tools/tool.ts";

const asks = { needsApproval: () => true };

function runOf(calls: readonly ToolCall[], tools: readonly Tool[]): SessionRun {
  return runSessionLoop(asking(), someAgent(), { model: scripted([calling(...calls), "Done."]), tools });
}

describe("a call that needs approval", () => {
  test.each(["yes", 1, ["a match"], Promise.resolve("yes")])(
    "waits where its tool says %j, which is not false",
    async (word) => {
      const ran: string[] = [];
      const tool = toolOf("pay", () => `ran ${ran.push("pay")}`, { needsApproval: () => word as never });
      const run = runOf([callOf("c", "pay")], [tool]);
      const { approval } = await nextEvent(run, "approval-required");
      await run.deny(approval.question);
      await run;
      expect(ran).toEqual([]);
    },
  );

  test("waits with its validated arguments, and runs when it is approved", async () => {
    const ran: unknown[] = [];
    const pay = defineTool({
      name: "pay",
      description: "Pays an amount.",
      parameters: { type: "object", properties: { amount: { type: "number" } }, required: ["amount"] },
      needsApproval: ({ amount }) => (amount as number) > 10,
      execute: (args) => {
        ran.push(args);
        return "paid";
      },
    });
    const run = runOf([callOf("small", "pay", { amount: 5 }), callOf("large", "pay", { amount: 50 })], [pay]);
    const { approval } = await nextEvent(run, "approval-required");
    expect(approval).toEqual({
      question: expect.any(String),
      callId: "large",
      name: "pay",
      arguments: { amount: 50 },
      effects: "commands",
      reach: null,
    });
    expect(run.pendingApprovals).toEqual([approval]);
    await nextEvent(run, "tool-finished", ({ callId }) => callId === "small");
    expect(ran).toEqual([{ amount: 5 }]);
    await run.approve("large");
    const session = await run;
    expect(ran).toEqual([{ amount: 5 }, { amount: 50 }]);
    expect(resultsOf(session.transcript)).toEqual(["paid", "paid"]);
    expect(run.pendingApprovals).toEqual([]);
  });

  test("is asked together with the others of its answer, each with the number of those that follow", async () => {
    const [pay, look] = [toolOf("pay", () => "paid", asks), toolOf("look", () => "seen")];
    const run = runOf([callOf("1", "pay"), callOf("2", "look"), callOf("3", "pay"), callOf("4", "pay")], [pay, look]);
    await nextEvent(run, "approval-required", ({ approval }) => approval.callId === "4");
    expect(run.pendingApprovals.map(({ callId, following }) => [callId, following])).toEqual([
      ["1", 2],
      ["3", 1],
      ["4", undefined],
    ]);
    run.abort();
  });

  test("that is denied does not run, and the model gets the reason", async () => {
    const ran: unknown[] = [];
    const pay = toolOf("pay", (args) => ran.push(args), asks);
    const run = runOf([callOf("1", "pay"), callOf("2", "pay")], [pay]);
    await nextEvent(run, "approval-required", ({ approval }) => approval.callId === "2");
    await run.deny("1", "Too expensive.");
    await run.deny("2");
    const session = await run;
    expect(ran).toEqual([]);
    expect(resultsOf(session.transcript)).toEqual([
      { ok: false, error_kind: "denied", message: "Too expensive." },
      { ok: false, error_kind: "denied", message: "The user did not allow this call." },
    ]);
    const events = await eventsOf(run);
    expect(events.some(({ type }) => type === "tool-started")).toBe(false);
    expect(events.filter(({ type }) => type === "tool-finished")).toHaveLength(2);
    expect(session.text()).toBe("Done.");
  });

  test("is one of several that are asked at the same time, and answered in any order", async () => {
    const order: string[] = [];
    const pay = toolOf("pay", (_args, { callId }) => order.push(callId), asks);
    const run = runOf(
      ["1", "2", "3"].map((id) => callOf(id, "pay")),
      [pay],
    );
    await nextEvent(run, "approval-required", ({ approval }) => approval.callId === "3");
    expect(run.pendingApprovals.map(({ callId }) => callId)).toEqual(["1", "2", "3"]);
    await run.approve("3");
    expect(run.pendingApprovals.map(({ callId }) => callId)).toEqual(["1", "2"]);
    await run.deny("2", "No.");
    await run.approve("1");
    const session = await run;
    expect(order).toEqual(["1", "3"]);
    expect(resultsOf(session.transcript)).toEqual([1, { ok: false, error_kind: "denied", message: "No." }, 2]);
  });

  test("delays the calls after it until it is answered, and not those before it", async () => {
    const ran: string[] = [];
    const step = (name: string, extras: Partial<Tool> = {}): Tool => toolOf(name, () => ran.push(name), extras);
    const run = runOf(
      [callOf("1", "before"), callOf("2", "pay"), callOf("3", "after")],
      [step("before"), step("pay", asks), step("after")],
    );
    await nextEvent(run, "tool-finished", ({ callId }) => callId === "1");
    await new Promise((resolve) => setImmediate(resolve));
    expect(ran).toEqual(["before"]);
    await run.approve("2");
    await run;
    expect(ran).toEqual(["before", "pay", "after"]);
  });

  test("is not approved by an answer to another question, nor twice, nor after the end", async () => {
    const run = runOf([callOf("1", "pay"), callOf("2", "pay")], [toolOf("pay", () => "paid", asks)]);
    await nextEvent(run, "approval-required", ({ approval }) => approval.callId === "2");
    await expect(run.approve("nobody")).rejects.toMatchObject({ code: "INVALID_OPTION", message: /"nobody"/ });
    await run.approve("2");
    await expect(run.deny("2")).rejects.toMatchObject({ code: "INVALID_OPTION" });
    await run.approve("1");
    await expect(run.deny("1")).rejects.toMatchObject({ code: "INVALID_OPTION" });
    const session = await run;
    expect(resultsOf(session.transcript)).toEqual(["paid", "paid"]);
    await expect(run.approve("2")).rejects.toMatchObject({ code: "RUN_ENDED" });
  });

  test("does not delay an abort, and nothing waits afterwards", async () => {
    const run = runOf([callOf("1", "pay")], [toolOf("pay", () => "paid", asks)]);
    await nextEvent(run, "approval-required");
    run.abort("no time");
    await expect(run.synchronize()).rejects.toMatchObject({ code: "ABORTED", cause: "no time" });
    expect(run.pendingApprovals).toEqual([]);
    await expect(run.approve("1")).rejects.toMatchObject({ code: "RUN_ENDED" });
  });

  test("with invalid arguments gets an error without a question", async () => {
    const pay = toolOf("pay", () => "paid", { ...asks, check: () => ({ ok: false, problem: "amount is missing" }) });
    const run = runOf([callOf("1", "pay")], [pay]);
    const session = await run;
    expect(resultsOf(session.transcript)).toMatchObject([{ error_kind: "invalid_tool_arguments" }]);
    expect((await eventsOf(run)).some(({ type }) => type === "approval-required")).toBe(false);
    expect(isWhole(session.transcript)).toBe(true);
  });
});
