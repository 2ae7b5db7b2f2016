import type { Entry } from "../session/log/entry.ts";
import type { Message } from "../session/message.ts";
import type { Settings } from "../session/log/settings.ts";
import type { Checkpoint } from "../session/store.ts";

/* The types of requests and answers about trees, paths and checkpoints. */

/** A node of the tree with the fields that a picture of it needs, without its content. */
export interface TreeNodeView {
  readonly id: string;
  /** The parent; in a folded tree, the nearest ancestor that is not left out. */
  readonly parentId: string | null;
  /** How many nodes between it and its parent a folded tree leaves out. */
  readonly skipped?: number;
  readonly seq: number;
  readonly type: string;
  readonly timestamp: string;
  readonly role: Message["role"] | null;
  /** The beginning of its text, on one line. */
  readonly preview: string;
  readonly label: string | null;
  /** The checkpoints at this node. */
  readonly checkpoints: readonly string[];
  readonly toolCalls: readonly string[];
}

/** The tree of a session: its nodes in log order, and the active path. */
export interface TreeView {
  readonly leafId: string | null;
  readonly version: number;
  readonly nodes: readonly TreeNodeView[];
  /** The ids from the root to the leaf. */
  readonly activePath: readonly string[];
}

/** Options for reading a tree. */
export interface ReadTree {
  /** Leaves out the inside of long chains of nodes without branches, labels and checkpoints. */
  readonly folded?: boolean;
  /** The ids of nodes that are never left out. */
  readonly keep?: readonly string[];
}

/**
 * Two paths to compare: one of this session, and one of the same or another session. Each ends at the session's leaf unless
 * another node is named.
 */
export interface CompareRequest {
  readonly leafId?: string;
  /** The session of the second path (default: the same one). */
  readonly with?: string;
  readonly withLeafId?: string;
  /** The most entries of each path (default 100, at most 1,000). */
  readonly limit?: number;
}

/** Two compared paths. */
export interface ComparisonView {
  /** The last common entry; null if there is none. */
  readonly ancestorId: string | null;
  /** The number of common messages. */
  readonly commonTurns: number;
  readonly left: ComparedPath;
  readonly right: ComparedPath;
}

/** One of two compared paths, after the last common entry. */
export interface ComparedPath {
  /** The first entries, oldest first; `more` is true if others follow. */
  readonly items: readonly Entry[];
  readonly more: boolean;
  /** The number of messages after the last common entry. */
  readonly turns: number;
  /** The settings at its end. */
  readonly settings: Settings;
}

/** The latest checkpoints of a session, the latest first, and the total number. */
export interface CheckpointTimeline {
  readonly items: readonly TimelineCheckpoint[];
  readonly total: number;
}

/** A checkpoint with its position in the tree. */
export interface TimelineCheckpoint extends Checkpoint {
  /** The node of the checkpoint; null if it is before the root. */
  readonly node: TreeNodeView | null;
  /** How many nodes of the active path come after it; null if it is not on the active path. */
  readonly stepsBack: number | null;
}
