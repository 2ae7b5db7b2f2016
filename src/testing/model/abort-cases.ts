import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import type { ModelCase, ModelSubject } from "../model-case.ts";
import { askInPieces, hello, textOfParts } from "./model-requests.ts";

/** Cases: aborting a request. */
export const abortCases: readonly ModelCase[] = [
  {
    name: "rejects with the signal's reason if it is aborted before the request",
    async run(subject) {
      const model = await subject.open();
      const reason = new Error("enough");
      await rejectsWith(reason, async () => model.complete(hello, { signal: AbortSignal.abort(reason) }));
    },
  },
  {
    name: "streams nothing if it is aborted before the request",
    needs: ["stream"],
    async run(subject) {
      const model = await subject.open();
      const reason = new Error("enough");
      await rejectsWith(reason, () => askInPieces(model, hello, AbortSignal.abort(reason)));
    },
  },
  {
    name: "rejects with the signal's reason if it is aborted during a stream, and streams nothing more",
    needs: ["stream"],
    async run(subject) {
      const model = await subject.open();
      const controller = new AbortController();
      const reason = new Error("enough");
      let pieces = 0;
      await rejectsWith(reason, async () => {
        for await (const _ of model.stream?.(hello, { signal: controller.signal }) ?? []) {
          pieces++;
          controller.abort(reason);
        }
      });
      assert.equal(pieces, 1);
    },
  },
  {
    name: "rejects with the signal's reason if it is aborted while waiting for the provider",
    needs: ["openSilent"],
    async run(subject) {
      const model = await silent(subject);
      const controller = new AbortController();
      const reason = new Error("enough");
      const answer = rejectsWith(reason, () => model.complete(hello, { signal: controller.signal }));
      await setImmediate();
      controller.abort(reason);
      await answer;
    },
  },
  {
    name: "rejects a stream with the signal's reason if it is aborted while waiting for the provider",
    needs: ["openSilent", "stream"],
    async run(subject) {
      const model = await silent(subject);
      const controller = new AbortController();
      const reason = new Error("enough");
      const answer = rejectsWith(reason, () => askInPieces(model, hello, controller.signal));
      await setImmediate();
      controller.abort(reason);
      await answer;
    },
  },
  {
    name: "answers normally with a signal that is not aborted, and after an aborted request",
    async run(subject) {
      const model = await subject.open();
      const controller = new AbortController();
      await assert.rejects(async () => model.complete(hello, { signal: AbortSignal.abort() }));
      assert.notEqual(textOfParts((await model.complete(hello, { signal: controller.signal })).content, "text"), "");
    },
  },
];

async function silent(subject: ModelSubject): Promise<Awaited<ReturnType<ModelSubject["open"]>>> {
  assert(subject.openSilent !== undefined, "give the case an `openSilent`, or skip it where `modelSkipReason` says so");
  return subject.openSilent();
}

async function rejectsWith(reason: Error, ask: () => Promise<unknown>): Promise<void> {
  await assert.rejects(ask, (error) => {
    assert.equal(error, reason, "the error is the reason itself, not a wrapper");
    return true;
  });
}
