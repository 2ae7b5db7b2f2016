import type { Model } from "../agent/model/model.ts";

/** What some models cannot do. */
export type ModelAbility = "stream" | "tools" | "usage";

/** What a case needs of its subject beside a model that answers. */
export type ModelCaseNeed = ModelAbility | "openSilent" | "openFailing" | "attempts";

/** A model under test. */
export interface ModelSubject {
  /** Opens a model that answers. Each case opens its own. */
  open(): Model | Promise<Model>;
  /** Opens one whose provider takes a request and never begins to answer. */
  openSilent?(): Model | Promise<Model>;
  /** Opens one whose provider refuses every request, as it does for a wrong key. */
  openFailing?(): Model | Promise<Model>;
  /** How many requests have reached the provider of the model that `openFailing` opened last. */
  attempts?(): number;
  /** What the model cannot do; a case that needs it is skipped. */
  readonly lacks?: readonly ModelAbility[];
}

/** One promise of `Model`, and the program that finds out whether a model keeps it. */
export interface ModelCase {
  /** A sentence of behaviour, different from that of every other case. */
  readonly name: string;
  readonly needs?: readonly ModelCaseNeed[];
  /** Rejects, with an `AssertionError` where it can say what is wrong, when the model does not keep the promise. */
  run(subject: ModelSubject): Promise<void>;
}

/** Why a case says nothing about a model, for a runner to show beside the case that it skips; null when it must run. */
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
