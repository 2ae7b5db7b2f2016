import assert from "node:assert/strict";
import type { Model, ModelReply, ModelRequest } from "../../agent/model/model.ts";
import type { Message } from "../../session/message.ts";
import type { ModelCase } from "../model-case.ts";
import { ask, askInPieces, checkReply, joinPieces, orderTools, textOfParts, whereIsIt } from "./model-requests.ts";

const required: ModelRequest = { messages: [whereIsIt], tools: orderTools, toolChoice: "required" };

/** Cases: tool calls. */
export const toolCases: readonly ModelCase[] = [
  {
    name: 'with toolChoice "required", calls an offered tool with arguments that match its schema',
    needs: ["tools"],
    async run(subject) {
      checkCalls(await ask(subject, required));
    },
  },
  {
    name: "with a tool named in toolChoice, calls that tool",
    needs: ["tools"],
    async run(subject) {
      const reply = await ask(subject, { ...required, toolChoice: { name: "cancel_order" } });
      checkCalls(reply);
      assert.deepEqual([...new Set(reply.toolCalls?.map(({ name }) => name))], ["cancel_order"]);
    },
  },
  {
    name: 'with toolChoice "none", calls no tool',
    needs: ["tools"],
    async run(subject) {
      const content = "Where is order 4711? Answer without a tool, even if you have to guess.";
      const reply = await ask(subject, { ...required, messages: [{ role: "user", content }], toolChoice: "none" });
      assert.equal(reply.toolCalls?.length ?? 0, 0);
      assert.notEqual(textOfParts(reply.content, "text"), "");
    },
  },
  {
    name: "continues from tool results and messages that a log returned",
    needs: ["tools"],
    async run(subject) {
      const model = await subject.open();
      const called = await model.complete(required);
      await checkContinues(model, called, (content) => ({ content }));
    },
  },
  {
    name: "continues after a failed tool call",
    needs: ["tools"],
    async run(subject) {
      const model = await subject.open();
      const called = await model.complete(required);
      await checkContinues(model, called, () => ({
        content: '{"ok":false,"error_kind":"tool_execution_exception","message":"The orders cannot be reached."}',
        isError: true,
      }));
    },
  },
  {
    name: "streams the same tool calls as it returns without streaming",
    needs: ["tools", "stream"],
    async run(subject) {
      const model = await subject.open();
      const { whole, joined } = joinPieces(model, await askInPieces(model, required));
      checkCalls(whole);
      assert.deepEqual(joined.toolCalls, whole.toolCalls, "the streamed parts add up to the tool calls");
      await checkContinues(model, whole, (content) => ({ content }));
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

async function checkContinues(
  model: Model,
  called: ModelReply,
  resultOf: (content: string) => { content: string; isError?: boolean },
): Promise<void> {
  checkReply(called);
  const results = (called.toolCalls ?? []).map(({ id, name }): Message => {
    return { role: "tool", toolCallId: id, name, ...resultOf("Order 4711 is in the post.") };
  });
  assert(results.length > 0, "there is a call");
  // A log stores JSON and returns another object.
  const kept = JSON.parse(JSON.stringify(called)) as Message;
  const reply = await model.complete({ messages: [whereIsIt, kept, ...results], tools: orderTools });
  checkReply(reply);
  assert(textOfParts(reply.content, "text") !== "" || (reply.toolCalls?.length ?? 0) > 0, "the model continues");
}
