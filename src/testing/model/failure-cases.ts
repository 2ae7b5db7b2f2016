import assert from "node:assert/strict";
import type { Model } from "../../agent/model/model.ts";
import { ModelError } from "../../agent/model/model-error.ts";
import type { ModelCase, ModelSubject } from "../model-case.ts";
import { askInPieces, hello } from "./model-requests.ts";

/** Cases: failures of the provider. */
export const failureCases: readonly ModelCase[] = [
  {
    name: "rejects with a ModelError with kind and message if its provider refuses the request",
    needs: ["openFailing"],
    async run(subject) {
      const model = await failing(subject);
      await assert.rejects(async () => model.complete(hello), isFailureOf(model));
    },
  },
  {
    name: "a stream rejects with the same error as a request without streaming",
    needs: ["openFailing", "stream"],
    async run(subject) {
      const model = await failing(subject);
      await assert.rejects(() => askInPieces(model, hello), isFailureOf(model));
    },
  },
  {
    name: "does not retry by itself",
    needs: ["openFailing", "attempts"],
    async run(subject) {
      const model = await failing(subject);
      await assert.rejects(async () => model.complete(hello));
      assert.equal(subject.attempts?.(), 1);
    },
  },
];

async function failing(subject: ModelSubject): Promise<Model> {
  assert(
    subject.openFailing !== undefined,
    "give the case an `openFailing`, or skip it where `modelSkipReason` says so",
  );
  return subject.openFailing();
}

function isFailureOf(model: Model): (error: unknown) => boolean {
  return (error) => {
    assert(error instanceof ModelError, `a failure is a ModelError, not ${String(error)}`);
    assert.equal(error.code, "MODEL_FAILED");
    assert.equal(error.provider, model.provider);
    assert.equal(typeof error.kind, "string");
    assert.notEqual(error.message, "");
    return true;
  };
}
