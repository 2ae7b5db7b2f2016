import { describe, expect, test } from "vitest";
import { usage } from "../../test/sample-log.ts";
import {
  asking,
  callOf,
  calling,
  isWhole,
  resultsOf,
  saying,
  shortly,
  someAgent,
  toolOf,
} from "../../test/sample-run.ts";
import { scripted } from "../models/scripted.ts";
import { Session } from "../session/value/session.ts";
import { sessionRegistry } from "../session/value/session-registry.ts";
import { Transcript, userRow } from "../session/value/transcript.ts";
import type { LoopOptions, Spending } from "./loop-options.ts";
import type { ModelReply } from "./model/model.ts";
import { runSessionCompress } from "./run-session-compress.ts";
import { runSessionLoop } from "./run-session-loop.ts";
import type { SessionRun } from "./session-run.ts";

/** Three rounds of 100 tokens and 1 unit of money each. */
const replies = (): ModelReply[] => [
  { ...calling(callOf("a", "look")), usage: usage(90, 10), cost: 1 },
  { ...calling(callOf("b", "look"), callOf("c", "look")), content: "Looking on.", usage: usage(90, 10), cost: 1 },
  saying("Done.", { usage: usage(90, 10), cost: 1 }),
];

async function spend(options: Partial<LoopOptions>) {
  const model = scripted(replies());
  const ran: string[] = [];
  const look = toolOf("look", (_args, { callId }) => ran.push(callId));
  const session = await runSessionLoop(asking(), someAgent(), { model, tools: [look], ...options });
  return { session, ran, rounds: model.requests.length, truncated: session.lineage.extras.length > 0 };
}

describe("a budget", () => {
  test("without a handler ends the run when it is exceeded, and keeps the last answer", async () => {
    const { session, ran, rounds, truncated } = await spend({ budget: { totalTokens: 150 } });
    expect(rounds).toBe(2);
    expect(ran).toEqual(["a"]);
    expect(truncated).toBe(true);
    expect(session.usage?.totalTokens).toBe(200);
    expect(shortly(session.transcript)[3]).toBe("assistant: Looking on. [look] [look]");
    expect(resultsOf(session.transcript).slice(1)).toMatchObject([
      { ok: false, error_kind: "interrupted" },
      { ok: false, error_kind: "interrupted" },
    ]);
    expect(isWhole(session.transcript)).toBe(true);
    const next = await runSessionLoop(session, someAgent(), { model: scripted(["Going on."]) });
    expect(next.text()).toBe("Going on.");
  });

  test("calls its handler once, when the budget is first exceeded, with everything that was spent", async () => {
    const told: Spending[] = [];
    const onBudget = (spent: Spending) => {
      told.push(spent);
      return "continue" as const;
    };
    const { session, rounds, truncated } = await spend({ budget: { cost: 0.5, totalTokens: 150 }, onBudget });
    expect(told).toEqual([{ usage: usage(90, 10), cost: 1 }]);
    expect(rounds).toBe(3);
    expect(truncated).toBe(false);
    expect(session.text()).toBe("Done.");
  });

  test("continues if the handler returns nothing, and stops if it returns stop", async () => {
    expect(await spend({ budget: { cost: 1.5 }, onBudget: () => undefined })).toMatchObject({
      rounds: 3,
      truncated: false,
    });
    expect(await spend({ budget: { cost: 1.5 }, onBudget: () => "stop" })).toMatchObject({
      rounds: 2,
      truncated: true,
    });
  });

  test("is not exceeded by spending exactly the limit", async () => {
    expect(await spend({ budget: { totalTokens: 300, cost: 3 } })).toMatchObject({ rounds: 3, truncated: false });
  });

  test("that the last answer exceeds does not cut the run short", async () => {
    const { session, truncated } = await spend({ budget: { totalTokens: 250 } });
    expect(session.text()).toBe("Done.");
    expect(truncated).toBe(false);
  });

  test("that ends the run keeps the undelivered input", async () => {
    const look = toolOf("look", () => run.steer("And that?"));
    const run: SessionRun = runSessionLoop(asking(), someAgent(), {
      model: scripted([calling(callOf("0", "look")), ...replies()]),
      tools: [look],
      budget: { totalTokens: 50 },
    });
    await run.followUp("And then?");
    const session = await run;
    expect(shortly(session.transcript)).toContain("user: And that?");
    expect(shortly(session.transcript).at(-1)).toBe("user: And then?");
  });

  test("whose handler throws fails the run, with the answer kept", async () => {
    const failure = new Error("No budget office.");
    const run = runSessionLoop(asking(), someAgent(), {
      model: scripted(replies()),
      tools: [toolOf("look")],
      budget: { cost: 0 },
      onBudget: () => {
        throw failure;
      },
    });
    await expect(run.synchronize()).rejects.toBe(failure);
    expect(shortly(run.transcript)).toEqual(["user: Do it.", "assistant: [look]"]);
  });
});

describe("a budget over the lineage", () => {
  const over = "lineage" as const;
  const spending = (text: string) => scripted([saying(text, { usage: usage(90, 10), cost: 1 })]);

  test("counts every earlier operation once, also through forks, merges and a compress", async () => {
    const first = await runSessionLoop(asking("One?"), someAgent(), { model: spending("One.") });
    const merged = first.fork().merge(first.fork());
    const second = await runSessionLoop(merged, someAgent(), { model: spending("Two.") });
    const third = await runSessionCompress(second, someAgent(), { model: spending("In short.") });
    // Only the process that ran forks knows them, so a merge of two forks is where the known lineage ends.
    expect(sessionRegistry.get(merged.id)).toBe(merged);
    const told: Spending[] = [];
    const onBudget = (spent: Spending) => {
      told.push(spent);
      return "stop" as const;
    };
    await runSessionLoop(third, someAgent(), { model: spending("Three."), budget: { cost: 2.5, over }, onBudget });
    expect(told).toEqual([{ usage: usage(270, 30), cost: 3 }]);
    const forked = await runSessionLoop(first.fork(), someAgent(), { model: spending("Two.") });
    await runSessionLoop(forked.fork(), someAgent(), {
      model: spending("Three."),
      budget: { cost: 2.5, over },
      onBudget,
    });
    expect(told.at(-1)).toEqual({ usage: usage(270, 30), cost: 3 });
  });

  test("that was exceeded before the run sends no request and reports that", async () => {
    const first = await runSessionLoop(asking("One?"), someAgent(), { model: spending("One.") });
    const model = spending("Two.");
    const told: Spending[] = [];
    const run = runSessionLoop(first, someAgent(), {
      model,
      budget: { totalTokens: 99, over },
      onBudget: (spent) => {
        told.push(spent);
        return "stop";
      },
    });
    await run.steer("And?");
    const session = await run;
    expect(model.requests).toHaveLength(0);
    expect(told).toEqual([{ usage: usage(90, 10), cost: 1 }]);
    expect(session.lineage.extras).toEqual([["loop.truncated", true]]);
    expect(shortly(session.transcript)).toEqual(["user: One?", "assistant: One.", "user: And?"]);
  });

  test("counts the usage of a session that no run produced, and not of an unregistered run", async () => {
    const resumed = Session.of(Transcript.of([userRow("Hi.")]), { usage: usage(500), cost: 5 });
    const told: Spending[] = [];
    const onBudget = (spent: Spending) => {
      told.push(spent);
      return "continue" as const;
    };
    await runSessionLoop(resumed, someAgent(), { model: spending("One."), budget: { cost: 1, over }, onBudget });
    expect(told).toEqual([{ usage: usage(500), cost: 5 }]);
    const hidden = await runSessionLoop(asking(), someAgent(), { model: spending("One."), register: false });
    const seen = await runSessionLoop(hidden.fork(), someAgent(), { model: spending("Two."), register: false });
    await runSessionLoop(seen, someAgent(), { model: spending("Three."), budget: { cost: 1.5, over }, onBudget });
    expect(told.at(-1)?.cost).toBe(2);
  });
});
