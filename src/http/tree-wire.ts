import type { Entry } from "../session/log/entry.ts";
import type { Message } from "../session/message.ts";
import type { Settings } from "../session/log/settings.ts";
import type { Checkpoint } from "../session/store.ts";

/* What server and client say to each other of trees, paths and where checkpoints stand in them, as types. */

/** A node of the tree with what a picture of it needs, without its content. */
export interface TreeNodeView {
  readonly id: string;
  /** In a folded tree, the nearest node above that is not left out. */
  readonly parentId: string | null;
  /** How many nodes between it and its parent a folded tree leaves out. */
  readonly skipped?: number;
  readonly seq: number;
  readonly type: string;
  readonly timestamp: string;
  readonly role: Message["role"] | null;
  /** The beginning of what it says, on one line. */
  readonly preview: string;
  readonly label: string | null;
  /** The checkpoints that stand here. */
  readonly checkpoints: readonly string[];
  readonly toolCalls: readonly string[];
}

/** The tree of a session: nodes in log order, and the path that is active. */
export interface TreeView {
  readonly leafId: string | null;
  readonly version: number;
  readonly nodes: readonly TreeNodeView[];
  /** The ids from the root to the leaf. */
  readonly activePath: readonly string[];
}

/** How to read a tree. */
export interface ReadTree {
  /** Leave out what lies within long runs without branches, labels and checkpoints. */
  readonly folded?: boolean;
  /** Entries that are not left out. */
  readonly keep?: readonly string[];
}

/** Two paths to compare: of this session, and of the same or another one; each to the session's leaf if none is named. */
export interface CompareRequest {
  readonly leafId?: string;
  /** The other session; left out, it is the same one. */
  readonly with?: string;
  readonly withLeafId?: string;
  /** At most so many entries of each (default 100, at most 1,000). */
  readonly limit?: number;
}

/** Two paths from where they part. */
export interface ComparisonView {
  /** The last entry that both have; null when they have none in common. */
  readonly ancestorId: string | null;
  /** How many messages they have in common. */
  readonly commonTurns: number;
  readonly left: ComparedPath;
  readonly right: ComparedPath;
}

/** What one of two paths has since they parted. */
export interface ComparedPath {
  /** The first entries, oldest first, and whether more follow. */
  readonly items: readonly Entry[];
  readonly more: boolean;
  /** How many messages it has since then. */
  readonly turns: number;
  /** What is set at its end. */
  readonly settings: Settings;
}

/** The latest checkpoints of a session, the latest first, and how many there are in all. */
export interface CheckpointTimeline {
  readonly items: readonly TimelineCheckpoint[];
  readonly total: number;
}

/** A checkpoint with where it stands. */
export interface TimelineCheckpoint extends Checkpoint {
  /** The node that it stands at; null before the root. */
  readonly node: TreeNodeView | null;
  /** How many nodes of the active path come after it; null where it stands elsewhere. */
  readonly stepsBack: number | null;
}
