import assert from "node:assert/strict";
import type { ModelCase } from "../model-case.ts";
import { askInPieces, checkReply, hello, joinPieces, repeatRequest, saidIn } from "./asking.ts";

/** How an answer comes piece by piece. */
export const streamCases: readonly ModelCase[] = [
  {
    name: "streams an answer and finishes it once, at the end",
    needs: ["stream"],
    async run(subject) {
      const model = await subject.open();
      const deltas = await askInPieces(model, hello);
      joinPieces(model, deltas);
      assert(
        deltas.some((delta) => delta.type === "text-delta" && delta.text !== ""),
        "there is text before the finish",
      );
    },
  },
  {
    name: "streams the same answer that its finish tells of",
    needs: ["stream"],
    async run(subject) {
      const model = await subject.open();
      const { whole, joined } = joinPieces(model, await askInPieces(model, hello));
      for (const type of ["text", "thinking"] as const) {
        assert.equal(saidIn(joined.content, type), saidIn(whole.content, type));
      }
      assert.deepEqual(joined.toolCalls ?? [], whole.toolCalls ?? []);
      assert.deepEqual(joined.usage, whole.usage);
    },
  },
  {
    name: "streams an answer of the kind that it gives at once",
    needs: ["stream"],
    async run(subject) {
      const model = await subject.open();
      const request = repeatRequest("golf-7291");
      const atOnce = await model.complete(request);
      const { whole } = joinPieces(model, await askInPieces(model, request));
      checkReply(atOnce);
      for (const reply of [atOnce, whole]) assert(saidIn(reply.content, "text").includes("golf-7291"));
      assert.equal(whole.stopReason ?? "stop", atOnce.stopReason ?? "stop");
      assert.equal(whole.provider, atOnce.provider);
      assert.equal(whole.usage === undefined, atOnce.usage === undefined, "tokens are counted both ways or neither");
    },
  },
  {
    name: "does not mix answers that are streamed at the same time",
    needs: ["stream"],
    async run(subject) {
      const model = await subject.open();
      const words = ["hotel-7291", "india-7291", "juliett-7291"];
      const streams = await Promise.all(words.map((word) => askInPieces(model, repeatRequest(word))));
      for (const [index, deltas] of streams.entries()) {
        const text = saidIn(joinPieces(model, deltas).whole.content, "text");
        assert.deepEqual(
          words.filter((word) => text.includes(word)),
          [words[index]],
        );
      }
    },
  },
  {
    name: "goes on answering after a stream that was left early",
    needs: ["stream"],
    async run(subject) {
      const model = await subject.open();
      for await (const delta of model.stream?.(hello) ?? []) {
        assert.notEqual(delta.type, "finish");
        break;
      }
      assert.notEqual(saidIn((await model.complete(hello)).content, "text"), "");
    },
  },
];
