import assert from "node:assert/strict";
import type { ModelRequest } from "../../agent/model/model.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { Message } from "../../session/message.ts";
import type { ModelCase } from "../model-case.ts";
import { ask, askOrRefuse, hello, orderTools, saidIn, whereIsIt } from "./asking.ts";

// A PNG of one black pixel.
const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==";

/** What a model may be asked, and that it leaves the question as it was. */
export const requestCases: readonly ModelCase[] = [
  {
    name: "takes a request that is frozen all through",
    async run(subject) {
      const request: ModelRequest = { messages: [...history(), whereIsIt], tools: orderTools, toolChoice: "none" };
      const before = structuredClone(request);
      await ask(subject, freezeDeep(request));
      assert.deepEqual(request, before);
    },
  },
  {
    name: "takes a request whose messages are read when they are asked for",
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
    name: "takes several system messages and several user messages in a row",
    async run(subject) {
      const messages: Message[] = [
        { role: "system", content: "You are brief." },
        { role: "system", content: [{ type: "text", text: "You are polite." }] },
        { role: "user", content: "Good morning." },
        ...hello.messages,
      ];
      assert.notEqual(saidIn((await ask(subject, { messages })).content, "text"), "");
    },
  },
  {
    name: "takes content in parts",
    async run(subject) {
      const content = [
        { type: "text", text: "Say hello" },
        { type: "text", text: "in one short sentence." },
      ] as const;
      assert.notEqual(saidIn((await ask(subject, { messages: [{ role: "user", content }] })).content, "text"), "");
    },
  },
  {
    name: "goes on with a conversation that another model began, with its thinking, its tools and its own data",
    needs: ["tools"],
    async run(subject) {
      const request: ModelRequest = { messages: [...history(), ...hello.messages], tools: orderTools };
      assert.notEqual(saidIn((await ask(subject, request)).content, "text"), "");
    },
  },
  {
    name: "takes an image, or refuses it as a request that will never do",
    async run(subject) {
      const content = [
        { type: "text", text: "Say hello in one short sentence." },
        { type: "image", mediaType: "image/png", data: PIXEL },
      ] as const;
      const reply = await askOrRefuse(subject, { messages: [{ role: "user", content }] });
      if (reply !== null) assert.notEqual(saidIn(reply.content, "text"), "");
    },
  },
  {
    name: "takes settings, or refuses them as a request that will never do",
    async run(subject) {
      const settings = { temperature: 0, maxOutputTokens: 2048, stop: ["\n\n\n"], thinkingLevel: "low" };
      const reply = await askOrRefuse(subject, { ...hello, ...settings });
      if (reply !== null) assert.notEqual(saidIn(reply.content, "text"), "");
    },
  },
];

/** A conversation with a model of another provider, whose blocks nobody else can read. */
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
