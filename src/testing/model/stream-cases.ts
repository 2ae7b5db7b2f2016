import assert from "node:assert/strict";
import type { ModelCase } from "../model-case.ts";
import { askInPieces, checkReply, hello, joinPieces, repeatRequest, textOfParts } from "./model-requests.ts";

/** Cases: streaming. */
export const streamCases: readonly ModelCase[] = [
  {
    name: "streams an answer with exactly one finish, at the end",
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
    name: "the streamed parts add up to the answer in the finish",
    needs: ["stream"],
    async run(subject) {
      const model = await subject.open();
      const { whole, joined } = joinPieces(model, await askInPieces(model, hello));
      for (const type of ["text", "thinking"] as const) {
        assert.equal(textOfParts(joined.content, type), textOfParts(whole.content, type));
      }
      assert.deepEqual(joined.toolCalls ?? [], whole.toolCalls ?? []);
      assert.deepEqual(joined.usage, whole.usage);
    },
  },
  {
    name: "streams the same kind of answer as it returns without streaming",
    needs: ["stream"],
    async run(subject) {
      const model = await subject.open();
      const request = repeatRequest("golf-7291");
      const unstreamed = await model.complete(request);
      const { whole } = joinPieces(model, await askInPieces(model, request));
      checkReply(unstreamed);
      for (const reply of [unstreamed, whole]) assert(textOfParts(reply.content, "text").includes("golf-7291"));
      assert.equal(whole.stopReason ?? "stop", unstreamed.stopReason ?? "stop");
      assert.equal(whole.provider, unstreamed.provider);
      assert.equal(
        whole.usage === undefined,
        unstreamed.usage === undefined,
        "usage is reported with and without streaming, or in neither case",
      );
    },
  },
  {
    name: "does not mix up concurrent streams",
    needs: ["stream"],
    async run(subject) {
      const model = await subject.open();
      const words = ["hotel-7291", "india-7291", "juliett-7291"];
      const streams = await Promise.all(words.map((word) => askInPieces(model, repeatRequest(word))));
      for (const [index, deltas] of streams.entries()) {
        const text = textOfParts(joinPieces(model, deltas).whole.content, "text");
        assert.deepEqual(
          words.filter((word) => text.includes(word)),
          [words[index]],
        );
      }
    },
  },
  {
    name: "answers further requests after a stream was abandoned",
    needs: ["stream"],
    async run(subject) {
      const model = await subject.open();
      for await (const delta of model.stream?.(hello) ?? []) {
        assert.notEqual(delta.type, "finish");
        break;
      }
      assert.notEqual(textOfParts((await model.complete(hello)).content, "text"), "");
    },
  },
];
