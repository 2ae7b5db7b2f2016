import { freezeDeep } from "../internal/freeze-deep.ts";
import type { Entry } from "../session/log/entry.ts";
import type { SessionStore } from "../session/store.ts";
import { buildTree, groupChildren, labelsOf, type TreeNode } from "../session/log/entry-tree.ts";

/** A cache of all entries of a session, updated incrementally. It is only created for calls that need all entries. */
export class TreeView {
  readonly #sessionId: string;
  readonly #entries: Entry[] = [];
  #children: Map<string | null, Entry[]> | null = null;
  #tree: TreeNode[] | null = null;

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  /** Reads the entries that were appended since the last call. */
  async update(store: SessionStore): Promise<void> {
    // All callers share the entries, so freeze them.
    const before = this.#entries.length;
    for await (const entry of store.read(this.#sessionId, { after: before - 1 })) this.#entries.push(freezeDeep(entry));
    if (this.#entries.length === before) return;
    this.#children = null;
    this.#tree = null;
  }

  entries(): Entry[] {
    return this.#entries.slice();
  }

  tree(): TreeNode[] {
    this.#tree ??= buildTree(this.#entries);
    return this.#tree.slice();
  }

  children(parentId: string | null): Entry[] {
    this.#children ??= groupChildren(this.#entries);
    return this.#children.get(parentId)?.slice() ?? [];
  }

  label(entryId: string): string | null {
    return labelsOf(this.#entries).get(entryId) ?? null;
  }

  labels(): ReadonlyMap<string, string> {
    return labelsOf(this.#entries);
  }
}
