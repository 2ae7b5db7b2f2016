import { type Entry, type EntryDraft, isNode } from "../session/entry.ts";
import type { AppendOptions, AppendResult, ReadOptions } from "../session/store.ts";

/** Where a chain appends to. */
export interface ChainedLog {
  append(drafts: readonly EntryDraft[], options: AppendOptions): Promise<AppendResult>;
  read(options: ReadOptions): AsyncIterable<Entry>;
}

/** What was appended, and what others had added to the path before it. */
export interface ChainedEntries extends AppendResult {
  /** Nodes of others between the chain's last node and the first of these, in order. */
  readonly others: readonly Entry[];
  /** Where the leaf is, when someone has moved it away since the chain last appended. */
  readonly movedTo?: { readonly leafId: string | null };
}

/** How a chain appends. */
export interface ChainOptions extends Pick<AppendOptions, "guard" | "verbatim"> {
  /** Begins a branch at the last node, wherever the leaf is. */
  readonly beside?: boolean;
}

const NOBODY: readonly Entry[] = Object.freeze([]);

/**
 * Appends to a session one entry after the other, where the session is: what others add meanwhile comes in between. Only
 * where someone moves the leaf elsewhere does the chain go on by itself. One call at a time.
 */
export class EntryChain {
  readonly #log: ChainedLog;
  #lastId: string | null;
  #version: number;
  /** Whether the leaf was at the chain's end when it last appended. */
  #atLeaf: boolean;

  /** `start` is the node that the first entry follows, the session's version, and whether the leaf is that node (default). */
  constructor(
    log: ChainedLog,
    start: { readonly lastId: string | null; readonly version: number; readonly atLeaf?: boolean },
  ) {
    this.#log = log;
    this.#lastId = start.lastId;
    this.#version = start.version;
    this.#atLeaf = start.atLeaf ?? true;
  }

  /** The last node of the chain. */
  get lastId(): string | null {
    return this.#lastId;
  }

  async append(
    drafts: readonly EntryDraft[],
    { guard, verbatim, beside = false }: ChainOptions = {},
  ): Promise<ChainedEntries> {
    const options: { -readonly [Key in keyof AppendOptions]: AppendOptions[Key] } = beside
      ? { onto: this.#lastId }
      : { below: this.#lastId };
    if (guard !== undefined) options.guard = guard;
    if (verbatim !== undefined) options.verbatim = verbatim;
    const result = await this.#log.append(drafts, options);
    // An entry that was there before this call is a repetition, and the chain has gone on since.
    const added = result.entries.filter((entry) => isNode(entry) && entry.seq >= this.#version);
    const [first] = added;
    if (first === undefined) return { ...result, others: NOBODY };
    const others = first.parentId === this.#lastId ? NOBODY : await this.#othersBefore(first);
    this.#lastId = (added.at(-1) as Entry).id;
    this.#version = result.version;
    const wasAtLeaf = this.#atLeaf;
    this.#atLeaf = result.head.leafId === this.#lastId;
    // A chain that began beside the leaf was never left.
    const moved = wasAtLeaf && !this.#atLeaf;
    return moved ? { ...result, others, movedTo: { leafId: result.head.leafId } } : { ...result, others };
  }

  /** The nodes between the last one and a new one. They came after the chain last appended. */
  async #othersBefore({ seq, parentId }: Entry): Promise<readonly Entry[]> {
    const above = new Map<string, Entry>();
    for await (const entry of this.#log.read({ after: this.#version - 1, before: seq })) above.set(entry.id, entry);
    const others: Entry[] = [];
    for (let entry = above.get(parentId ?? ""); entry !== undefined; entry = above.get(entry.parentId ?? ""))
      others.unshift(entry);
    return others;
  }
}
