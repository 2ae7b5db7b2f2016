import { freezeDeep } from "../internal/freeze-deep.ts";
import type { Entry } from "../session/log/entry.ts";
import type { SessionStore } from "../session/store.ts";
import { buildTree, groupChildren, labelsOf, type TreeNode } from "../session/log/tree.ts";

/** All entries of a session, read once and then kept up with; made only when someone asks for all of them. */
export class TreeView {
  readonly #sessionId: string;
  readonly #entries: Entry[] = [];
  #children: Map<string | null, Entry[]> | null = null;
  #tree: TreeNode[] | null = null;

  constructor(sessionId: string) {
    this.#sessionId = sessionId;
  }

  /** Reads what was appended since the last call. */
  async update(store: SessionStore): Promise<void> {
    // Entries are shared by all who ask, so none of them may change one.
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
