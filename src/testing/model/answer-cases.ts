import assert from "node:assert/strict";
import { copyJson, sameJson } from "../../internal/json.ts";
import { USAGE_FIELDS } from "../../session/usage.ts";
import type { ModelCase } from "../model-case.ts";
import { ask, hello, repeatRequest, saidIn } from "./asking.ts";

/** What an answer is. */
export const answerCases: readonly ModelCase[] = [
  {
    name: "names its provider and itself, and a window of whole tokens if it has one",
    async run(subject) {
      const { provider, id, contextWindow } = await subject.open();
      assert(typeof provider === "string" && provider !== "", "provider");
      assert(typeof id === "string" && id !== "", "id");
      assert(contextWindow === undefined || (Number.isSafeInteger(contextWindow) && contextWindow > 0), "window");
    },
  },
  {
    name: "answers a question with text, and stops because it is done",
    async run(subject) {
      const reply = await ask(subject, hello);
      assert.notEqual(saidIn(reply.content, "text").trim(), "");
      assert.equal(reply.toolCalls?.length ?? 0, 0);
      assert.equal(reply.stopReason ?? "stop", "stop");
    },
  },
  {
    name: "gives an answer that a log can keep",
    async run(subject) {
      const reply = await ask(subject, hello);
      assert(sameJson(JSON.parse(JSON.stringify(copyJson(reply))), reply), "the answer is JSON");
    },
  },
  {
    name: "counts its tokens in whole numbers, of which the total is no less than input and output",
    needs: ["usage"],
    async run(subject) {
      const { usage, cost } = await ask(subject, hello);
      assert(usage !== undefined, "the subject says nothing of lacking usage, and the answer has none");
      for (const field of USAGE_FIELDS) {
        const count = usage[field];
        assert(count === undefined || (Number.isSafeInteger(count) && count >= 0), `${field} is ${count}`);
      }
      assert(usage.inputTokens > 0 && usage.outputTokens > 0, "a question and an answer take tokens");
      assert(usage.totalTokens >= usage.inputTokens + usage.outputTokens, "the total is less than its parts");
      assert((usage.cacheReadTokens ?? 0) + (usage.cacheWriteTokens ?? 0) <= usage.inputTokens, "cache is input");
      assert((usage.reasoningTokens ?? 0) <= usage.outputTokens, "reasoning is output");
      assert(cost === undefined || (Number.isFinite(cost) && cost >= 0), `cost is ${cost}`);
    },
  },
  {
    name: "does not mix questions that are asked at the same time",
    async run(subject) {
      const model = await subject.open();
      const words = ["alpha", "bravo", "charlie", "delta", "echo"].map((word) => `${word}-7291`);
      const replies = await Promise.all(words.map((word) => model.complete(repeatRequest(word))));
      for (const [index, reply] of replies.entries()) {
        const text = saidIn(reply.content, "text");
        assert.deepEqual(
          words.filter((word) => text.includes(word)),
          [words[index]],
        );
      }
    },
  },
  {
    name: "keeps letters of any script whole",
    async run(subject) {
      const word = "naïve-漢字-😀";
      assert(saidIn((await ask(subject, repeatRequest(word))).content, "text").includes(word));
    },
  },
];
