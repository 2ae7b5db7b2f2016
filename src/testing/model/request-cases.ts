import assert from "node:assert/strict";
import type { ModelRequest } from "../../agent/model/model.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { Message } from "../../session/message.ts";
import type { ModelCase } from "../model-case.ts";
import { ask, askOrRefuse, hello, orderTools, textOfParts, whereIsIt } from "./model-requests.ts";

// A PNG of one black pixel.
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";

/** Cases: requests that a model must accept, without modifying them. */
export const requestCases: readonly ModelCase[] = [
  {
    name: "accepts a deeply frozen request",
    async run(subject) {
      const request: ModelRequest = { messages: [...history(), whereIsIt], tools: orderTools, toolChoice: "none" };
      const before = structuredClone(request);
      await ask(subject, freezeDeep(request));
      assert.deepEqual(request, before);
    },
  },
  {
    name: "accepts a request whose messages are a getter",
    async run(subject) {
      let reads = 0;
      const request: ModelRequest = Object.freeze({
        get messages() {
          reads++;
          return hello.messages;
        },
      });
      await ask(subject, request);
      assert(reads > 0, "the messages were never read");
    },
  },
  {
    name: "accepts several consecutive system messages and user messages",
    async run(subject) {
      const messages: Message[] = [
        { role: "system", content: "You are brief." },
        { role: "system", content: [{ type: "text", text: "You are polite." }] },
        { role: "user", content: "Good morning." },
        ...hello.messages,
      ];
      assert.notEqual(textOfParts((await ask(subject, { messages })).content, "text"), "");
    },
  },
  {
    name: "accepts content in several parts",
    async run(subject) {
      const content = [
        { type: "text", text: "Say hello" },
        { type: "text", text: "in one short sentence." },
      ] as const;
      assert.notEqual(textOfParts((await ask(subject, { messages: [{ role: "user", content }] })).content, "text"), "");
    },
  },
  {
    name: "continues the conversation of another model, with its thinking, tool calls and provider data",
    needs: ["tools"],
    async run(subject) {
      const request: ModelRequest = { messages: [...history(), ...hello.messages], tools: orderTools };
      assert.notEqual(textOfParts((await ask(subject, request)).content, "text"), "");
    },
  },
  {
    name: "accepts an image, or refuses it with an error that is not retryable",
    async run(subject) {
      const content = [
        { type: "text", text: "Say hello in one short sentence." },
        { type: "image", mediaType: "image/png", data: PIXEL },
      ] as const;
      const reply = await askOrRefuse(subject, { messages: [{ role: "user", content }] });
      if (reply !== null) assert.notEqual(textOfParts(reply.content, "text"), "");
    },
  },
  {
    name: "accepts settings, or refuses them with an error that is not retryable",
    async run(subject) {
      const settings = { temperature: 0, maxOutputTokens: 2048, stop: ["\n\n\n"], thinkingLevel: "low" };
      const reply = await askOrRefuse(subject, { ...hello, ...settings });
      if (reply !== null) assert.notEqual(textOfParts(reply.content, "text"), "");
    },
  },
];

/** A conversation with a model of another provider, with provider data that only that provider can read. */
function history(): readonly Message[] {
  return [
    { role: "system", content: "You help with orders." },
    { role: "user", content: "Is order 17 on its way?", agent: "clerk", metadata: { channel: "mail" } },
    {
      role: "assistant",
      content: [
        { type: "thinking", text: "I have to look.", signature: "c2lnbmF0dXJl" },
        { type: "text", text: "I look it up." },
      ],
      toolCalls: [
        { id: "toolu_elsewhere_1", name: "find_order", arguments: '{"number":"17"}' },
        { id: "toolu_elsewhere_2", name: "find_order", arguments: "" },
      ],
      provider: "elsewhere",
      model: "other-1",
      usage: { inputTokens: 10, outputTokens: 5, totalTokens: 15 },
      cost: 0.001,
      stopReason: "tool_calls",
      providerData: { blocks: [{ type: "unheard-of" }] },
    },
    { role: "tool", toolCallId: "toolu_elsewhere_1", name: "find_order", content: "on its way" },
    {
      role: "tool",
      toolCallId: "toolu_elsewhere_2",
      name: "find_order",
      content: '{"ok":false,"error_kind":"invalid_tool_arguments","message":"number is missing."}',
      isError: true,
    },
    { role: "assistant", content: "It is on its way.", provider: "elsewhere", model: "other-1", stopReason: "stop" },
  ];
}
