import { describe, expect, test } from "vitest";
import { CountedBackend, gate } from "../../../test/counted-sandbox.ts";
import {
  asking,
  callOf,
  calling,
  collectWarnings,
  eventsOf,
  isWhole,
  nextEvent,
  resultsOf,
  shortly,
  someAgent,
  toolOf,
} from "../../../test/sample-run.ts";
import { scripted } from "../../models/scripted.ts";
import type { ToolCall } from "../../session/message.ts";
import { SandboxError } from "../../session/sandbox/sandbox.ts";
import type { Session } from "../../session/value/session.ts";
import { defineTool } from "./define-tool.ts";
import { runSessionLoop } from "../run-session-loop.ts";
import type { Tool } from "./tool.ts";

/** Runs one round with these calls. */
function runCalls(calls: readonly ToolCall[], tools: readonly Tool[]): Promise<Session> {
  const model = scripted([calling(...calls), "Done."]);
  return runSessionLoop(asking(), someAgent(), { model, tools, builtInTools: false }).synchronize();
}

/** The result of one call of one tool, as the model sees it. */
async function resultOf(tool: Tool, args: unknown = {}): Promise<unknown> {
  const session = await runCalls([callOf("a", tool.schema.name, args)], [tool]);
  expect(session.text()).toBe("Done.");
  expect(isWhole(session.transcript)).toBe(true);
  return resultsOf(session.transcript)[0];
}

describe("the calls of a round", () => {
  test("run concurrently, even 64 of them, with results and events in call order", async () => {
    const { messages, settled } = collectWarnings();
    const finish = new Map<number, () => void>();
    const wait = toolOf("wait", (args) => {
      const { n } = args as { n: number };
      return new Promise((resolve) => {
        finish.set(n, () => resolve(n));
        // Only once all of them run does any of them finish, the last one first.
        if (finish.size === 64) for (let each = 63; each >= 0; each--) finish.get(each)?.();
      });
    });
    const calls = Array.from({ length: 64 }, (_, n) => callOf(`call-${n}`, "wait", { n }));
    const run = runSessionLoop(asking(), someAgent(), { model: scripted([calling(...calls), "Done."]), tools: [wait] });
    const session = await run;
    expect(resultsOf(session.transcript)).toEqual(calls.map((_, n) => n));
    const finished = (await eventsOf(run)).flatMap((event) => (event.type === "tool-finished" ? [event.callId] : []));
    expect(finished).toEqual(calls.map(({ id }) => id));
    await settled();
    expect(messages).toEqual([]);
  });

  test("have their results written as soon as all earlier results are complete", async () => {
    const gates = [gate(), gate(), gate()];
    const done: number[] = [];
    const wait = toolOf("wait", async (args) => {
      const { n } = args as { n: number };
      await gates[n]?.pass;
      done.push(n);
    });
    const calls = gates.map((_, n) => callOf(`${n}`, "wait", { n }));
    const run = runSessionLoop(asking(), someAgent(), { model: scripted([calling(...calls), "Done."]), tools: [wait] });
    gates[1]?.open();
    await expect.poll(() => done).toEqual([1]);
    expect(run.transcript.length).toBe(2);
    gates[0]?.open();
    await nextEvent(run, "tool-finished", ({ callId }) => callId === "1");
    expect(run.transcript.length).toBe(4);
    gates[2]?.open();
    await run;
  });

  test("with equal keys run in call order, as a read and a write of one path do", async () => {
    const order: string[] = [];
    const slowly = (what: string) => async (args: unknown) => {
      const { path } = args as { path: string };
      order.push(`${what} ${path} starts`);
      await new Promise((resolve) => setImmediate(resolve));
      order.push(`${what} ${path} ends`);
    };
    const resourceKey = (args: unknown): string => (args as { path: string }).path;
    await runCalls(
      [
        callOf("1", "write", { path: "a" }),
        callOf("2", "read", { path: "a" }),
        callOf("3", "read", { path: "b" }),
        callOf("4", "write", { path: "a" }),
      ],
      [toolOf("read", slowly("read"), { resourceKey }), toolOf("write", slowly("write"), { resourceKey })],
    );
    expect(order.filter((step) => step.includes(" a "))).toEqual([
      "write a starts",
      "write a ends",
      "read a starts",
      "read a ends",
      "write a starts",
      "write a ends",
    ]);
    expect(order.indexOf("read b starts")).toBe(1);
  });

  test("wait for an exclusive one, which waits for all before it", async () => {
    const order: string[] = [];
    const step = (name: string, extras: Partial<Tool> = {}): Tool =>
      toolOf(
        name,
        async () => {
          order.push(`${name} starts`);
          await new Promise((resolve) => setImmediate(resolve));
          order.push(`${name} ends`);
        },
        extras,
      );
    await runCalls(
      [callOf("1", "one"), callOf("2", "alone"), callOf("3", "three"), callOf("4", "four")],
      [step("one"), step("alone", { exclusive: true }), step("three"), step("four")],
    );
    expect(order).toEqual([
      "one starts",
      "one ends",
      "alone starts",
      "alone ends",
      "three starts",
      "four starts",
      "three ends",
      "four ends",
    ]);
  });

  test("that had finished when the run was stopped keep their results, and the others have none", async () => {
    const controller = new AbortController();
    const hang = toolOf("hang", () => new Promise(() => {}));
    const { pass, open } = gate();
    const quick = toolOf("quick", async () => {
      setImmediate(open);
      return "was quick";
    });
    const run = runSessionLoop(asking(), someAgent(), {
      model: scripted([calling(callOf("1", "hang"), callOf("2", "quick"), callOf("3", "hang"))]),
      tools: [hang, quick],
      signal: controller.signal,
    });
    await pass;
    controller.abort();
    await expect(run.synchronize()).rejects.toMatchObject({ code: "ABORTED" });
    expect(shortly(run.transcript)).toEqual(["user: Do it.", "assistant: [hang] [quick] [hang]", "tool: was quick"]);
  });
});

describe("an error is returned to the model, and the run continues, for", () => {
  const strict = defineTool({
    name: "strict",
    description: "Takes a path.",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
    execute: ({ path }) => path,
  });

  test("arguments that are not JSON, with the position", async () => {
    expect(await resultOf(strict, '{"path": "a"')).toEqual({
      ok: false,
      error_kind: "invalid_tool_arguments",
      message: expect.stringMatching(/cannot be read as JSON.*position 12/),
    });
  });

  test("arguments that do not match the schema, with the path", async () => {
    expect(await resultOf(strict, { path: 7 })).toEqual({
      ok: false,
      error_kind: "invalid_tool_arguments",
      message: expect.stringMatching(/path/),
    });
    expect(await resultOf(strict, [])).toMatchObject({ error_kind: "invalid_tool_arguments" });
  });

  test("arguments with __proto__, which has no effect", async () => {
    const seen: unknown[] = [];
    const answer = await resultOf(
      toolOf("look", (args) => seen.push(args)),
      '{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}',
    );
    expect(answer).toMatchObject({ ok: false, error_kind: "invalid_tool_arguments" });
    expect(seen).toEqual([]);
    expect({}).not.toHaveProperty("polluted");
  });

  test("an unknown tool, with the known ones", async () => {
    const session = await runCalls([callOf("a", "nothing")], [strict]);
    expect(resultsOf(session.transcript)).toEqual([
      { ok: false, error_kind: "unknown_tool", message: "There is no tool nothing; there are: strict." },
    ]);
    const [, , row] = session.transcript.toMessages();
    expect(row).toMatchObject({ role: "tool", toolCallId: "a", name: "nothing", isError: true });
  });

  const hostile = {
    toString() {
      throw new Error("Not even this.");
    },
  };
  const unreadable = new Error("x");
  Object.defineProperty(unreadable, "message", { value: { not: "a text" } });
  test.each([
    ["an error", new Error("The disk is full."), "The disk is full."],
    ["an error without a message", new TypeError(""), "TypeError"],
    ["an error whose message is no text", unreadable, "Error"],
    ["a text", "just a text", "just a text"],
    ["an object with a message", { message: "in an object" }, "in an object"],
    ["nothing", undefined, "undefined was thrown, which says nothing about the reason."],
    ["null", null, "null was thrown, which says nothing about the reason."],
    ["something that cannot be shown", hostile, "Something was thrown that cannot be shown."],
    ["an object without a prototype", Object.create(null), "Something was thrown that cannot be shown."],
    ["a symbol", Symbol("odd"), "Symbol(odd)"],
  ])("a tool that throws %s", async (_name, thrown, message) => {
    const throwing = [
      toolOf("look", () => {
        throw thrown;
      }),
      toolOf("look", () => Promise.reject(thrown)),
    ];
    for (const tool of throwing) {
      expect(await resultOf(tool)).toEqual({ ok: false, error_kind: "tool_execution_exception", message });
    }
  });

  test("a tool whose check, key or needsApproval throws", async () => {
    const fail = (): never => {
      throw new Error("No good.");
    };
    for (const extras of [{ check: fail }, { resourceKey: fail }, { needsApproval: fail }] as Partial<Tool>[]) {
      expect(await resultOf(toolOf("look", () => "done", extras))).toEqual({
        ok: false,
        error_kind: "tool_execution_exception",
        message: "No good.",
      });
    }
  });

  test("a tool that times out and ignores its signal", async () => {
    let signal: AbortSignal | undefined;
    const hang = toolOf(
      "hang",
      (_args, context) => {
        signal = context.signal;
        return new Promise(() => {});
      },
      { timeoutMs: 5 },
    );
    expect(await resultOf(hang)).toEqual({
      ok: false,
      error_kind: "timeout",
      message: "The tool did not finish within 5 ms.",
    });
    expect(signal?.aborted).toBe(true);
  });

  test.each([
    "timeout",
    "os_error",
    "file_not_found",
    "unsupported",
    "sandbox_closed",
    "not_permitted",
    "limit_exceeded",
    "output_truncated",
  ] as const)("a sandbox that fails with %s, with the command's output", async (kind) => {
    const output = { stdout: `${"a".repeat(5000)}end`, stderr: "oops" };
    const fail = toolOf("fail", () => Promise.reject(new SandboxError(kind, "It failed.", { output })));
    const answer = (await resultOf(fail)) as { detail: { stdout: string; stderr: string } };
    expect(answer).toMatchObject({ ok: false, error_kind: kind, message: "It failed.", detail: { stderr: "oops" } });
    expect(answer.detail.stdout).toMatch(/^a{2000}\n… 1003 characters left out …\na+end$/);
    const plain = toolOf("fail", () => Promise.reject(new SandboxError(kind, "It failed.")));
    expect(await resultOf(plain)).toEqual({ ok: false, error_kind: kind, message: "It failed." });
  });

  test("a sandbox that was closed while a tool ran", async () => {
    const backend = new CountedBackend();
    const user = asking().to(backend.name);
    const sandbox = await user.requireSandbox();
    const read = toolOf("read", async (_args, context) => {
      await sandbox.close();
      return (await context.requireSandbox()).readFile("a");
    });
    const model = scripted([calling(callOf("1", "read")), calling(callOf("2", "read")), "Done."]);
    const session = await runSessionLoop(user, someAgent(), { model, tools: [read] });
    expect(resultsOf(session.transcript)).toEqual([
      { ok: false, error_kind: "sandbox_closed", message: "session sandbox is closed" },
      { ok: false, error_kind: "sandbox_closed", message: "session sandbox is closed" },
    ]);
    expect(session.text()).toBe("Done.");
  });

  test("a tool that needs a sandbox in a session without a place", async () => {
    const need = toolOf("need", (_args, context) => context.requireSandbox());
    expect(await resultOf(need)).toMatchObject({
      ok: false,
      message: expect.stringMatching(/no sandbox; call session.to/),
    });
  });
});

test("empty arguments mean none", async () => {
  expect(
    await resultOf(
      toolOf("look", (args) => args),
      "",
    ),
  ).toEqual({});
  expect(
    await resultOf(
      toolOf("look", (args) => args),
      " \n",
    ),
  ).toEqual({});
});

test("a thenable that starts its work when it is awaited is awaited once", async () => {
  let started = 0;
  const query = {
    // biome-ignore lint/suspicious/noThenProperty: this is what a query builder does.
    then(resolve: (value: string) => void) {
      started += 1;
      resolve("rows");
    },
  };
  expect(await resultOf(toolOf("query", () => query))).toBe("rows");
  expect(started).toBe(1);
});
