import assert from "node:assert/strict";
import type { Model, ModelReply, ModelRequest } from "../../agent/model/model.ts";
import type { Message } from "../../session/message.ts";
import type { ModelCase } from "../model-case.ts";
import { ask, askInPieces, checkReply, joinPieces, orderTools, saidIn, whereIsIt } from "./asking.ts";

const required: ModelRequest = { messages: [whereIsIt], tools: orderTools, toolChoice: "required" };

/** How a model calls tools. */
export const toolCases: readonly ModelCase[] = [
  {
    name: "calls a tool that it was offered when it must, with arguments as the schema asks for",
    needs: ["tools"],
    async run(subject) {
      checkCalls(await ask(subject, required));
    },
  },
  {
    name: "calls the tool that it is told to call",
    needs: ["tools"],
    async run(subject) {
      const reply = await ask(subject, { ...required, toolChoice: { name: "cancel_order" } });
      checkCalls(reply);
      assert.deepEqual([...new Set(reply.toolCalls?.map(({ name }) => name))], ["cancel_order"]);
    },
  },
  {
    name: "calls no tool when it must not, though some are offered",
    needs: ["tools"],
    async run(subject) {
      const content = "Where is order 4711? Answer without a tool, even if you have to guess.";
      const reply = await ask(subject, { ...required, messages: [{ role: "user", content }], toolChoice: "none" });
      assert.equal(reply.toolCalls?.length ?? 0, 0);
      assert.notEqual(saidIn(reply.content, "text"), "");
    },
  },
  {
    name: "goes on from the results of its calls, as a log gives them back",
    needs: ["tools"],
    async run(subject) {
      const model = await subject.open();
      const called = await model.complete(required);
      await checkGoesOn(model, called, (content) => ({ content }));
    },
  },
  {
    name: "goes on from a call that failed",
    needs: ["tools"],
    async run(subject) {
      const model = await subject.open();
      const called = await model.complete(required);
      await checkGoesOn(model, called, () => ({
        content: '{"ok":false,"error_kind":"tool_execution_exception","message":"The orders cannot be reached."}',
        isError: true,
      }));
    },
  },
  {
    name: "calls a tool piece by piece as it does at once",
    needs: ["tools", "stream"],
    async run(subject) {
      const model = await subject.open();
      const { whole, joined } = joinPieces(model, await askInPieces(model, required));
      checkCalls(whole);
      assert.deepEqual(joined.toolCalls, whole.toolCalls, "the pieces of the calls are the calls");
      await checkGoesOn(model, whole, (content) => ({ content }));
    },
  },
];

function checkCalls(reply: ModelReply): void {
  assert(reply.toolCalls !== undefined && reply.toolCalls.length > 0, "there is a call");
  assert.equal(reply.stopReason ?? "tool_calls", "tool_calls");
  for (const call of reply.toolCalls) {
    assert(
      orderTools.some(({ name }) => name === call.name),
      `${call.name} was never offered`,
    );
    const args: unknown = JSON.parse(call.arguments);
    assert(typeof args === "object" && args !== null && "number" in args, `arguments ${call.arguments}`);
    assert.equal(typeof args.number, "string");
  }
}

async function checkGoesOn(
  model: Model,
  called: ModelReply,
  resultOf: (content: string) => { content: string; isError?: boolean },
): Promise<void> {
  checkReply(called);
  const results = (called.toolCalls ?? []).map(({ id, name }): Message => {
    return { role: "tool", toolCallId: id, name, ...resultOf("Order 4711 is in the post.") };
  });
  assert(results.length > 0, "there is a call");
  // A log keeps JSON, and what it gives back is another object.
  const kept = JSON.parse(JSON.stringify(called)) as Message;
  const reply = await model.complete({ messages: [whereIsIt, kept, ...results], tools: orderTools });
  checkReply(reply);
  assert(saidIn(reply.content, "text") !== "" || (reply.toolCalls?.length ?? 0) > 0, "the model goes on");
}
