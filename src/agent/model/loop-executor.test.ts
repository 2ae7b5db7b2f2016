import { describe, expect, test } from "vitest";
import { gate } from "../../../test/counted-sandbox.ts";
import { asking, callOf, calling, resultsOf, saying, shortly, someAgent, toolOf } from "../../../test/sample-run.ts";
import { scripted } from "../../models/scripted.ts";
import type { Session } from "../../session/value/session.ts";
import { type LoopExecutor, streamingExecutor } from "./loop-executor.ts";
import { ModelError } from "./model-error.ts";
import type { ModelDelta, ModelReply, ModelRequest } from "./model.ts";
import { runSessionLoop } from "../run-session-loop.ts";
import type { Tool } from "../tools/tool.ts";

/** An executor that returns these replies and records its requests. */
function executorOf(replies: readonly ModelReply[], extras: Partial<LoopExecutor> = {}) {
  const requests: ModelRequest[] = [];
  const executor: LoopExecutor = {
    async complete(request, { signal }) {
      signal.throwIfAborted();
      requests.push(request);
      return replies[requests.length - 1] as ModelReply;
    },
    ...extras,
  };
  return { executor, requests };
}

describe("an executor", () => {
  test("answers in place of the model, which is not called", async () => {
    const model = scripted([]);
    const { executor, requests } = executorOf([calling(callOf("a", "look")), saying("Done.")]);
    const session = await runSessionLoop(asking(), someAgent(), {
      model,
      executor,
      tools: [toolOf("look")],
      builtInTools: false,
    });
    expect(shortly(session.transcript)).toEqual([
      "user: Do it.",
      "assistant: [look]",
      "tool: done",
      "assistant: Done.",
    ]);
    expect(requests).toHaveLength(2);
    expect(requests[0]?.tools?.map(({ name }) => name)).toEqual(["look"]);
    expect(model.requests).toHaveLength(0);
  });

  test("runs the tools, with the session and checked arguments", async () => {
    const seen: unknown[] = [];
    const look = toolOf("look", () => "the tool's own way", { check: () => ({ ok: true, value: { checked: true } }) });
    const { executor } = executorOf([calling(callOf("a", "look", { raw: true })), saying("Done.")], {
      dispatchTool(session: Session, tool: Tool, args: unknown) {
        seen.push(session.transcript.length, tool, args);
        return "the executor's way";
      },
    });
    const run = runSessionLoop(asking(), someAgent(), { executor, tools: [look] });
    expect(resultsOf((await run).transcript)).toEqual(["the executor's way"]);
    expect(seen).toEqual([2, look, { checked: true }]);
  });

  test("gets the call, and can let the tool execute it", async () => {
    const look = toolOf("look", (_args, { callId, runId }) => `${callId} in ${runId}`);
    const { executor } = executorOf([calling(callOf("a", "look"), callOf("b", "look")), saying("Done.")], {
      dispatchTool: (_session, tool, args, context) => tool.execute(args, context),
    });
    const session = await runSessionLoop(asking(), someAgent(), { executor, tools: [look] });
    const [first, second] = resultsOf(session.transcript).map((result) => String(result).split(" in "));
    expect([first?.[0], second?.[0]]).toEqual(["a", "b"]);
    expect(first?.[1]).toBe(second?.[1]);
  });

  test("receives the tool's timeout and the run's abort as a signal", async () => {
    const reasons: unknown[] = [];
    const began = gate();
    const dispatchTool: LoopExecutor["dispatchTool"] = (_session, _tool, _args, { callId, signal }) => {
      if (callId === "b") began.open();
      return new Promise((_resolve, reject) => {
        signal.addEventListener("abort", () => reject(reasons.push(callId)), { once: true });
      });
    };
    const { executor } = executorOf([calling(callOf("a", "quick")), calling(callOf("b", "slow"))], { dispatchTool });
    const tools = [toolOf("quick", undefined, { timeoutMs: 1 }), toolOf("slow")];
    const run = runSessionLoop(asking(), someAgent(), { executor, tools });
    await began.pass;
    expect(reasons).toEqual(["a"]);
    run.abort();
    await expect(run).rejects.toMatchObject({ code: "ABORTED" });
    expect([resultsOf(run.transcript), reasons]).toMatchObject([[{ error_kind: "timeout" }], ["a", "b"]]);
  });

  test("offers its own tools, which only it can run", async () => {
    const schema = {
      name: "remote",
      description: "Runs elsewhere.",
      parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] },
    } as const;
    const { executor, requests } = executorOf(
      [
        calling(callOf("1", "remote", { n: 7 }), callOf("2", "remote", { n: "seven" }), callOf("3", "local")),
        saying("Done."),
      ],
      {
        toolSchemas: () => [schema],
        dispatchTool: (_session, tool, args) => ({ ran: tool.schema.name, args }) as never,
      },
    );
    const session = await runSessionLoop(asking(), someAgent(), { executor, tools: [toolOf("local")] });
    expect(requests[0]?.tools).toEqual([schema]);
    expect(resultsOf(session.transcript)).toEqual([
      { ran: "remote", args: { n: 7 } },
      { ok: false, error_kind: "invalid_tool_arguments", message: expect.stringMatching(/n/) },
      { ran: "local", args: {} },
    ]);
  });

  test("without tools leaves the loop's own tools in place", async () => {
    const { executor, requests } = executorOf([saying("Done.")], { toolSchemas: () => [] });
    await runSessionLoop(asking(), someAgent(), { executor, tools: [toolOf("look")], builtInTools: false });
    expect(requests[0]?.tools?.map(({ name }) => name)).toEqual(["look"]);
  });

  test("is retried after a transient failure, and can be stopped", async () => {
    let asked = 0;
    const executor: LoopExecutor = {
      complete(_request, { signal }) {
        asked += 1;
        if (asked === 1) return Promise.reject(new ModelError("overloaded", "Too busy.", { provider: "own" }));
        run.abort("enough");
        return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      },
    };
    const run = runSessionLoop(asking(), someAgent(), { executor, retry: { baseDelayMs: 0 } });
    await expect(run.synchronize()).rejects.toMatchObject({ code: "ABORTED", cause: "enough" });
    expect(asked).toBe(2);
  });

  test("that throws instead of answering fails the run", async () => {
    const failure = new Error("No.");
    const executor: LoopExecutor = {
      complete() {
        throw failure;
      },
    };
    await expect(runSessionLoop(asking(), someAgent(), { executor }).synchronize()).rejects.toBe(failure);
  });
});

describe("a streaming executor", () => {
  test("calls its listener with each delta, and runs tools with the inner executor", async () => {
    const deltas: ModelDelta[] = [];
    const inner = {
      prefix: "inner",
      dispatchTool(this: { prefix: string }, _session: Session, tool: Tool) {
        return `${this.prefix} ran ${tool.schema.name}`;
      },
    };
    const model = scripted([calling(callOf("a", "look")), "Done."]);
    const executor = streamingExecutor(model, (delta) => deltas.push(delta), inner);
    const session = await runSessionLoop(asking(), someAgent(), { executor, tools: [toolOf("look")] });
    expect(resultsOf(session.transcript)).toEqual(["inner ran look"]);
    expect(session.text()).toBe("Done.");
    const types = deltas.map(({ type }) => type);
    expect(types).toContain("tool-call-delta");
    expect(types).toContain("text-delta");
  });

  test("uses the schemas of the inner executor", async () => {
    const model = scripted(["Done."]);
    const schema = toolOf("remote").schema;
    const executor = streamingExecutor(model, () => {}, { toolSchemas: () => [schema], dispatchTool: () => "x" });
    await runSessionLoop(asking(), someAgent(), { executor });
    expect(model.requests[0]?.tools).toEqual([schema]);
  });
});
