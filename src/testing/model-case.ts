import type { Model } from "../agent/model/model.ts";

/** Features that some models do not have. */
export type ModelAbility = "stream" | "tools" | "usage";

/** A requirement of a case, besides a model that answers. */
export type ModelCaseNeed = ModelAbility | "openSilent" | "openFailing" | "attempts";

/** A model under test. */
export interface ModelSubject {
  /** Opens a model that answers. Each case calls it for its own model. */
  open(): Model | Promise<Model>;
  /** Opens a model whose provider accepts a request and never answers. */
  openSilent?(): Model | Promise<Model>;
  /** Opens a model whose provider refuses every request, as with an invalid API key. */
  openFailing?(): Model | Promise<Model>;
  /** How many requests the last model of `openFailing` has sent to its provider. */
  attempts?(): number;
  /** Features that the model does not have. Cases that need them are skipped. */
  readonly lacks?: readonly ModelAbility[];
}

/** One conformance case of `Model`: a promise of the contract, and a test of it. */
export interface ModelCase {
  /** A unique sentence of behaviour. */
  readonly name: string;
  readonly needs?: readonly ModelCaseNeed[];
  /** Rejects if the model does not keep the promise, mostly with an `AssertionError`. */
  run(subject: ModelSubject): Promise<void>;
}

/** Why a case must be skipped for a subject, for a test runner to show; null if it must run. */
export function modelSkipReason({ needs = [] }: ModelCase, subject: ModelSubject): string | null {
  for (const need of needs) {
    if (need === "stream" || need === "tools" || need === "usage") {
      if (subject.lacks?.includes(need)) return `the model has no ${need}`;
    } else if (subject[need] === undefined) {
      return `the subject has no ${need}`;
    }
  }
  return null;
}
