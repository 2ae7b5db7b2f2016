import assert from "node:assert/strict";
import { copyJson, sameJson } from "../../internal/json.ts";
import { USAGE_FIELDS } from "../../session/usage.ts";
import type { ModelCase } from "../model-case.ts";
import { ask, hello, repeatRequest, textOfParts } from "./model-requests.ts";

/** Cases: answers. */
export const answerCases: readonly ModelCase[] = [
  {
    name: "has a provider and an id, and a context window that is a positive integer if it has one",
    async run(subject) {
      const { provider, id, contextWindow } = await subject.open();
      assert(typeof provider === "string" && provider !== "", "provider");
      assert(typeof id === "string" && id !== "", "id");
      assert(contextWindow === undefined || (Number.isSafeInteger(contextWindow) && contextWindow > 0), "window");
    },
  },
  {
    name: 'answers a question with text and the stop reason "stop"',
    async run(subject) {
      const reply = await ask(subject, hello);
      assert.notEqual(textOfParts(reply.content, "text").trim(), "");
      assert.equal(reply.toolCalls?.length ?? 0, 0);
      assert.equal(reply.stopReason ?? "stop", "stop");
    },
  },
  {
    name: "the answer is JSON, so that a log can store it",
    async run(subject) {
      const reply = await ask(subject, hello);
      assert(sameJson(JSON.parse(JSON.stringify(copyJson(reply))), reply), "the answer is JSON");
    },
  },
  {
    name: "counts tokens as integers, with a total of at least input plus output",
    needs: ["usage"],
    async run(subject) {
      const { usage, cost } = await ask(subject, hello);
      assert(usage !== undefined, "the subject does not declare that it lacks usage, and the answer has none");
      for (const field of USAGE_FIELDS) {
        const count = usage[field];
        assert(count === undefined || (Number.isSafeInteger(count) && count >= 0), `${field} is ${count}`);
      }
      assert(usage.inputTokens > 0 && usage.outputTokens > 0, "input and output have tokens");
      assert(usage.totalTokens >= usage.inputTokens + usage.outputTokens, "the total is less than its parts");
      assert(
        (usage.cacheReadTokens ?? 0) + (usage.cacheWriteTokens ?? 0) <= usage.inputTokens,
        "cache tokens are input tokens",
      );
      assert((usage.reasoningTokens ?? 0) <= usage.outputTokens, "reasoning tokens are output tokens");
      assert(cost === undefined || (Number.isFinite(cost) && cost >= 0), `cost is ${cost}`);
    },
  },
  {
    name: "does not mix up concurrent requests",
    async run(subject) {
      const model = await subject.open();
      const words = ["alpha", "bravo", "charlie", "delta", "echo"].map((word) => `${word}-7291`);
      const replies = await Promise.all(words.map((word) => model.complete(repeatRequest(word))));
      for (const [index, reply] of replies.entries()) {
        const text = textOfParts(reply.content, "text");
        assert.deepEqual(
          words.filter((word) => text.includes(word)),
          [words[index]],
        );
      }
    },
  },
  {
    name: "returns characters of all scripts unchanged",
    async run(subject) {
      const word = "naïve-漢字-😀";
      assert(textOfParts((await ask(subject, repeatRequest(word))).content, "text").includes(word));
    },
  },
];
