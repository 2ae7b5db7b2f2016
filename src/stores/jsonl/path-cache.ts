import { EMPTY_PATH, type PathSummary } from "../../session/fold.ts";

const RECENT_MAX = 512;
const MILESTONES_MAX = 8192;

/**
 * Remembers the paths of some nodes: of the latest ones, and of one in every few levels of the tree, so that from
 * any node a known ancestor is not far. Takes a bounded number of them, however long the log.
 */
export class PathCache {
  /** The latest, and those before them: dropping a whole generation is cheaper than one path at a time. */
  #recent = new Map<string, PathSummary>();
  #older = new Map<string, PathSummary>();
  #milestones = new Map<string, PathSummary>();
  #stride = 16;

  get(id: string | null): PathSummary | undefined {
    if (id === null) return EMPTY_PATH;
    return this.#recent.get(id) ?? this.#older.get(id) ?? this.#milestones.get(id);
  }

  set(id: string, path: PathSummary): void {
    this.#recent.set(id, path);
    if (this.#recent.size >= RECENT_MAX) {
      this.#older = this.#recent;
      this.#recent = new Map();
    }
    if (path.depth % this.#stride === 0) this.keep(id, path);
  }

  /** Remembers a path for longer than the latest ones. */
  keep(id: string, path: PathSummary): void {
    this.#milestones.set(id, path);
    if (this.#milestones.size <= MILESTONES_MAX) return;
    this.#stride *= 2;
    const kept = [...this.#milestones].filter(([, { depth }]) => depth % this.#stride === 0);
    // Paths that were kept for another reason than their depth are not thinned out by it.
    this.#milestones = new Map(kept.length <= MILESTONES_MAX / 2 ? kept : kept.slice(-MILESTONES_MAX / 2));
  }
}
