import { describe, expect, test } from "vitest";
import { CountedBackend } from "../../test/counted-sandbox.ts";
import { usage } from "../../test/sample-log.ts";
import { asking, callOf, calling, inShort, modelOf, saying, shortly, someAgent } from "../../test/sample-run.ts";
import { scripted } from "../models/scripted.ts";
import { trackLineage } from "../session/lineage/lineage-scope.ts";
import { Session } from "../session/value/session.ts";
import { sessionRegistry } from "../session/value/session-registry.ts";
import { assistantRow, toolResultRow, Transcript, userRow } from "../session/value/transcript.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { SessionTree } from "../tree/session-tree.ts";
import { ModelError } from "./model/model-error.ts";
import type { ModelReply } from "./model/model.ts";
import type { RunEvent } from "./run-event.ts";
import { runSessionCompress } from "./run-session-compress.ts";

const retry = { baseDelayMs: 0 };
const talk = (): Session =>
  Session.of(
    Transcript.of([
      userRow("One?"),
      assistantRow([callOf("a", "look")]),
      toolResultRow("a", "look", "seen"),
      assistantRow([], "One."),
    ]),
  );

describe("a compress", () => {
  test("asks with the agent's rows, the user's rows and the instruction, and without tools", async () => {
    const model = scripted(["In short."]);
    const parameters = {
      temperature: 0,
      maxOutputTokens: 50,
      stop: ["END"],
      providerOptions: { seed: 1 },
      thinkingLevel: "low",
    } as const;
    await runSessionCompress(talk(), someAgent(), { model, instruction: "Sum it up.", ...parameters });
    const [request] = model.requests;
    expect(request?.messages.map(inShort)).toEqual([
      "system: Be brief.",
      "user: One?",
      "assistant: [look]",
      "tool: seen",
      "assistant: One.",
      "user: Sum it up.",
    ]);
    expect(request).toMatchObject({ toolChoice: "none", ...parameters });
    expect(request).not.toHaveProperty("tools");
    const unspoken = scripted(["In short."]);
    await runSessionCompress(talk(), someAgent(), { model: unspoken });
    expect(unspoken.requests[0]?.messages.at(-1)).toMatchObject({
      role: "user",
      content: expect.stringMatching(/Summarise/),
    });
  });

  test("returns a new session with the answer as its only row, with its lineage and cost", async () => {
    const [user, agent] = [talk(), someAgent()];
    const before = structuredClone([user.transcript.rows, user.lineage, agent.transcript.rows]);
    const session = await runSessionCompress(user, agent, {
      model: scripted([saying("  In short.\n", { usage: usage(9, 1), cost: 2 })]),
    });
    expect(shortly(session.transcript)).toEqual(["user: In short."]);
    expect(session.lineage).toEqual({
      kind: "op_session_compress",
      operator: "runSessionCompress",
      parents: [user.id, agent.id],
      extras: [
        ["compression.lossy", true],
        ["compression.rows_out", 1],
      ],
    });
    expect([session.usage, session.cost]).toEqual([usage(9, 1), 2]);
    expect([user.transcript.rows, user.lineage, agent.transcript.rows]).toEqual(before);
  });

  test("creates exactly one session, and registers it unless `register` is false", async () => {
    const [user, agent] = [talk(), someAgent()];
    const options = { model: scripted(["One.", "Two."]), persist: openMemoryStore() };
    await trackLineage(async (journal) => {
      const session = await runSessionCompress(user, agent, options);
      expect(journal.visitOrder).toEqual([session.id]);
      expect(sessionRegistry.get(session.id)).toBe(session);
      const hidden = await runSessionCompress(user, agent, { ...options, register: false });
      expect(sessionRegistry.get(hidden.id)).toBeUndefined();
    });
  });

  test("shares the sandbox, and releases it when it fails", async () => {
    const backend = new CountedBackend();
    const user = asking().to(backend.name);
    const sandbox = await user.requireSandbox();
    const session = await runSessionCompress(user, someAgent(), { model: scripted(["In short."]) });
    expect(session.sandbox).toBe(sandbox);
    await expect(runSessionCompress(user, someAgent(), { model: scripted([""]) })).rejects.toMatchObject({
      code: "SUMMARY_FAILED",
    });
    await user.closeSandbox();
    expect(backend.live.size).toBe(1);
    await session.closeSandbox();
    expect(backend.live.size).toBe(0);
  });

  test.each<[string, ModelReply]>([
    ["calls a tool", { ...calling(callOf("a", "look")), content: "In short." }],
    ["says nothing", saying("")],
    ["says nothing but white space", saying(" \n ")],
    [
      "has nothing but thoughts",
      { role: "assistant", content: [{ type: "thinking", text: "Hm." }], stopReason: "stop" },
    ],
    ["was cut short", saying("In sh", { stopReason: "length" })],
    ["was filtered", saying("In short.", { stopReason: "content_filter" })],
    ["stopped for calls", saying("In short.", { stopReason: "tool_calls" })],
    ["is an error", saying("In short.", { stopReason: "error" })],
  ])("fails for an answer that %s, and keeps nothing", async (_name, reply) => {
    const store = openMemoryStore();
    const compressing = runSessionCompress(talk(), someAgent(), { model: scripted([reply]), persist: store });
    await expect(compressing).rejects.toMatchObject({
      code: "SUMMARY_FAILED",
      message: /^The session was not compressed: /,
    });
    expect(await store.count()).toBe(0);
  });

  test("fails for an invalid answer like the loop", async () => {
    for (const reply of [null, { role: "user", content: "x" }]) {
      const model = modelOf(async () => reply as unknown as ModelReply);
      await expect(runSessionCompress(talk(), someAgent(), { model })).rejects.toMatchObject({
        code: "MODEL_FAILED",
        kind: "malformed",
      });
    }
  });

  test("emits events", async () => {
    const heard: RunEvent[] = [];
    const reply = saying("In short.", { usage: usage(9, 1), cost: 2 });
    const session = await runSessionCompress(talk(), someAgent(), {
      model: scripted([new ModelError("server", "Busy.", { provider: "x" }), reply]),
      onEvent: (event) => heard.push(event),
      retry,
    });
    expect(heard.filter(({ type }) => type !== "text-delta")).toMatchObject([
      { type: "run-started" },
      { type: "round-started", round: 1 },
      { type: "model-retry", round: 1, attempt: 2, delayMs: 0, error: { code: "MODEL_FAILED", message: "Busy." } },
      { type: "usage", round: 1, usage: usage(9, 1), cost: 2 },
      { type: "round-finished", round: 1, message: reply, stopReason: "stop" },
      { type: "run-finished", truncated: false, usage: session.usage },
    ]);
    const text = heard.flatMap((event) => (event.type === "text-delta" ? [event.text] : [])).join("");
    expect(text).toBe("In short.");
  });

  test("uses the executor if one is given", async () => {
    const session = await runSessionCompress(talk(), someAgent(), {
      executor: { complete: async () => saying("By the executor.") },
    });
    expect(session.transcript.at(0)?.message.content).toBe("By the executor.");
  });

  test("is stored as a session with its one row and the agent's instructions", async () => {
    const store = openMemoryStore();
    const session = await runSessionCompress(talk(), someAgent(), { model: scripted(["In short."]), persist: store });
    const tree = await SessionTree.on(store, session.id);
    const context = await tree.buildContext();
    expect(context.messages).toEqual([{ role: "user", content: "In short." }]);
    expect(context.systemPrompt).toBe("Be brief.");
    expect(tree.header.lineage).toEqual(session.lineage);
    expect(await store.count()).toBe(1);
  });

  test("is ended by an abort before, during and while its input is awaited", async () => {
    const never = modelOf(() => new Promise(() => {}));
    const controller = new AbortController();
    const compressing = runSessionCompress(talk(), someAgent(), { model: never, signal: controller.signal });
    controller.abort("enough");
    await expect(compressing).rejects.toMatchObject({ code: "ABORTED", cause: "enough" });
    await expect(
      runSessionCompress(talk(), someAgent(), { model: never, signal: AbortSignal.abort("already") }),
    ).rejects.toMatchObject({ code: "ABORTED", cause: "already" });
  });
});
