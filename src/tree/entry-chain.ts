import { type EntryDraft, isNode } from "../session/entry.ts";
import type { AppendOptions, AppendResult } from "../session/store.ts";

/** Appends to a session one entry after the other, wherever others move the leaf meanwhile. One call at a time. */
export class EntryChain {
  readonly #append: (drafts: readonly EntryDraft[], options: AppendOptions) => Promise<AppendResult>;
  #lastId: string | null;
  #version: number;

  /** `start` is the node that the first entry follows, and the session's version. */
  constructor(
    append: (drafts: readonly EntryDraft[], options: AppendOptions) => Promise<AppendResult>,
    start: { readonly lastId: string | null; readonly version: number },
  ) {
    this.#append = append;
    this.#lastId = start.lastId;
    this.#version = start.version;
  }

  /** The last node of the chain. */
  get lastId(): string | null {
    return this.#lastId;
  }

  append(
    drafts: readonly EntryDraft[],
    { guard, verbatim }: Pick<AppendOptions, "guard" | "verbatim"> = {},
  ): Promise<AppendResult> {
    const options: { -readonly [Key in keyof AppendOptions]: AppendOptions[Key] } = { onto: this.#lastId };
    if (guard !== undefined) options.guard = guard;
    if (verbatim !== undefined) options.verbatim = verbatim;
    return this.#append(drafts, options).then(this.#goOn);
  }

  readonly #goOn = (result: AppendResult): AppendResult => {
    // An entry that was there before this call is a repetition, and the chain has gone on since.
    for (const entry of result.entries) if (isNode(entry) && entry.seq >= this.#version) this.#lastId = entry.id;
    this.#version = result.version;
    return result;
  };
}
