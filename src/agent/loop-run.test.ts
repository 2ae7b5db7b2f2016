import { describe, expect, test } from "vitest";
import { CountedBackend, gate } from "../../test/counted-sandbox.ts";
import {
  asking,
  callOf,
  calling,
  eventsOf,
  nextEvent,
  resultsOf,
  shortly,
  someAgent,
  toolOf,
} from "../../test/sample-run.ts";
import { scripted } from "../models/scripted.ts";
import type { Session } from "../session/value/session.ts";
import { createAgent } from "./agent.ts";
import { runSessionCompress } from "./run-session-compress.ts";
import { runSessionLoop } from "./run-session-loop.ts";
import type { SessionRun } from "./session-run.ts";
import type { Tool, ToolContext } from "./tools/tool.ts";

/** A run of one call, whose tool can see the run that it belongs to. */
function runWith(execute: (run: SessionRun, context: ToolContext) => unknown): SessionRun {
  const tool: Tool = toolOf("look", (_args, context) => execute(run, context));
  const run: SessionRun = runSessionLoop(asking(), someAgent(), {
    model: scripted([calling(callOf("a", "look")), "Done."]),
    tools: [tool],
  });
  return run;
}

const codeOf = (waiting: PromiseLike<unknown>): Promise<string> =>
  Promise.resolve(waiting).then(
    () => "it came",
    (error: { code?: string }) => error.code ?? "another error",
  );

describe("inside a tool", () => {
  test("context.session is a live view of the run's session", async () => {
    const seen: (string[] | string | number)[] = [];
    let kept: Session | null = null;
    const run = runWith(async (self, context) => {
      kept = context.session;
      seen.push(shortly(context.session.transcript), context.callId);
      await self.steer("One more thing.");
    });
    const session = await run;
    expect(seen).toEqual([["user: Do it.", "assistant: [look]"], "a"]);
    expect(kept).toBe(session);
    expect(shortly(session.transcript).at(-1)).toBe("assistant: Done.");
  });

  test("a run that awaits itself is refused immediately, in every way of awaiting it", async () => {
    const codes: string[] = [];
    const run = runWith(async (self) => {
      codes.push(await codeOf(self));
      codes.push(await codeOf(self.synchronize()));
      codes.push(await codeOf(runSessionLoop(self, someAgent(), { model: scripted(["Two."]) })));
      codes.push(await codeOf(runSessionCompress(self, someAgent(), { model: scripted(["Two."]) })));
    });
    await run;
    expect(codes).toEqual(["DEADLOCK", "DEADLOCK", "DEADLOCK", "DEADLOCK"]);
    expect(await codeOf(run)).toBe("it came");
  });

  test("awaiting it is refused through a sub-agent, too", async () => {
    const codes: string[] = [];
    const run = runWith(async (self) => {
      const inner = toolOf("inner", async () => {
        codes.push(await codeOf(self));
      });
      await createAgent({
        prompt: "Help.",
        model: scripted([calling(callOf("b", "inner")), "Helped."]),
        tools: [inner],
      }).run("Help.");
    });
    await run;
    expect(codes).toEqual(["DEADLOCK"]);
  });

  test("awaiting it is refused while arguments are checked and `needsApproval` runs", async () => {
    const codes: string[] = [];
    const tool = toolOf("look", () => "done", {
      check: async (value) => {
        codes.push(await codeOf(run));
        return { ok: true, value };
      },
      needsApproval: async () => {
        codes.push(await codeOf(run));
        return false;
      },
    });
    const run: SessionRun = runSessionLoop(asking(), someAgent(), {
      model: scripted([calling(callOf("a", "look")), "Done."]),
      tools: [tool],
    });
    await run;
    expect(codes).toEqual(["DEADLOCK", "DEADLOCK"]);
  });

  test("code that a tool leaves running after its result can await the run", async () => {
    const { pass, open } = gate();
    let later: Promise<string> | null = null;
    const run = runWith((self) => {
      later = pass.then(() => codeOf(self));
      return "started in the background";
    });
    await nextEvent(run, "tool-finished");
    open();
    expect(await later).toBe("it came");
  });

  test("another run may be awaited", async () => {
    const other = runSessionLoop(asking(), someAgent(), { model: scripted(["Other."]) });
    const session = await runWith(async () => (await other).text());
    expect(resultsOf(session.transcript)).toEqual(["Other."]);
  });
});

describe("a sub-agent inside a tool", () => {
  test("uses the same sandbox, and has its own events", async () => {
    const backend = new CountedBackend();
    const user = asking().to(backend.name);
    const write = toolOf("write", async (_args, context) =>
      (await context.requireSandbox()).writeFile("note", "hello"),
    );
    const helper = createAgent({
      name: "helper",
      prompt: "Help.",
      model: scripted([calling(callOf("w", "write")), "Wrote it."]),
      tools: [write],
    });
    const innerEvents: string[] = [];
    const delegate = toolOf("delegate", async (_args, context) => {
      const sandbox = await context.requireSandbox();
      const run = helper.run(asking("Write a note.").bindSandbox(sandbox));
      for await (const event of run) innerEvents.push(event.type);
      await using inner = await run;
      expect(inner.sandbox).toBe(sandbox);
      return inner.text();
    });
    const model = scripted([calling(callOf("d", "delegate")), "Delegated."]);
    const run = runSessionLoop(user, someAgent(), { model, tools: [delegate] });
    const session = await run;
    expect(resultsOf(session.transcript)).toEqual(["Wrote it."]);
    const data = (await (await session.requireSandbox()).readFile("note")) as Uint8Array;
    expect(new TextDecoder().decode(data)).toBe("hello");
    expect(innerEvents.filter((type) => type === "tool-finished")).toHaveLength(1);
    const outer = await eventsOf(run);
    expect(outer.filter(({ type }) => type === "round-started")).toHaveLength(2);
    expect(backend.opens).toBe(1);
  });

  test("that continues from context.session does not repeat the call that started it", async () => {
    let started = 0;
    const delegate: Tool = toolOf("delegate", async (_args, context) => {
      started += 1;
      if (started > 3) return "again";
      const inner = runSessionLoop(context.session, someAgent("Help."), {
        model: scripted(["Helped."]),
        tools: [delegate],
      });
      return (await inner).text();
    });
    const session = await runSessionLoop(asking(), someAgent(), {
      model: scripted([calling(callOf("d", "delegate")), "Delegated."]),
      tools: [delegate],
    });
    expect(started).toBe(1);
    expect(shortly(session.transcript)).toEqual([
      "user: Do it.",
      "assistant: [delegate]",
      "tool: Helped.",
      "assistant: Delegated.",
    ]);
  });
});

describe("the sandbox of a run", () => {
  test("is released when the run fails, and stays open for its other sessions", async () => {
    const backend = new CountedBackend();
    await using user = asking().to(backend.name);
    await user.requireSandbox();
    const run = runSessionLoop(user, someAgent(), { model: scripted([]) });
    await expect(run.synchronize()).rejects.toThrow();
    expect(backend.live.size).toBe(1);
    await user.closeSandbox();
    expect(backend.live.size).toBe(0);
  });

  test("that only the failed run used is closed", async () => {
    const backend = new CountedBackend();
    const open = toolOf("open", async (_args, context) => (await context.requireSandbox()).id);
    const model = scripted([calling(callOf("a", "open"))]);
    const run = runSessionLoop(asking().to(backend.name), someAgent(), { model, tools: [open] });
    await expect(run.synchronize()).rejects.toThrow();
    expect(backend.opens).toBe(1);
    expect(backend.live.size).toBe(0);
  });
});

test("a run has catch and finally, as promises have", async () => {
  const told: string[] = [];
  const run = runSessionLoop(asking(), someAgent(), { model: scripted(["Done."]) });
  const answer = await run.finally(() => told.push("ended")).catch(() => null);
  expect(answer?.text()).toBe("Done.");
  expect(await run.catch(() => null)).toBe(answer);
  const failing = runSessionLoop(asking(), someAgent(), { model: scripted([new Error("No model today.")]) });
  expect(await failing.catch(({ message }: Error) => message)).toContain("No model today.");
  await expect(failing.finally(() => told.push("failed"))).rejects.toThrow("No model today.");
  expect(told).toEqual(["ended", "failed"]);
});
