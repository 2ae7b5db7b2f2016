import { type Client, type SessionView, type TreeNodeView, treeNodeOf, type TreeView } from "skein/client";
import { alignTurns, type TurnPair } from "./align-turns.ts";
import { differencesOf, type ValueDifference } from "./setting-differences.ts";
import { turnRowOf } from "./turn-row.ts";

/** One side of a comparison: a branch of a session. */
export interface Side {
  readonly session: SessionView;
  /** Its tree, folded. */
  readonly tree: TreeView;
  readonly leafId: string | null;
}

/** Two branches from their common ancestor on. */
export interface Comparison {
  /** The last common node; null without one. */
  readonly ancestorId: string | null;
  /** The number of common turns. */
  readonly commonTurns: number;
  readonly pairs: readonly TurnPair[];
  /** The number of turns of each side after the common ancestor. */
  readonly leftTurns: number;
  readonly rightTurns: number;
  /** Whether a side has more nodes than were loaded. */
  readonly more: boolean;
  readonly differences: readonly ValueDifference[];
  /** The nodes of each side after the common ancestor, as far as they were loaded. */
  readonly leftNodes: readonly TreeNodeView[];
  readonly rightNodes: readonly TreeNodeView[];
}

/** Loads two branches from their common ancestor on, up to `nodesMax` nodes of each. */
export async function readComparison(
  client: Client,
  left: Side,
  right: Side,
  options: { readonly nodesMax: number; readonly signal: AbortSignal },
): Promise<Comparison> {
  const { nodesMax, signal } = options;
  const request = {
    with: right.session.header.id,
    limit: nodesMax,
    ...(left.leafId === null ? {} : { leafId: left.leafId }),
    ...(right.leafId === null ? {} : { withLeafId: right.leafId }),
  };
  const found = await client.sessions.compare(left.session.header.id, request, { signal });
  const rowsIn = ({ items }: typeof found.left) => items.map(turnRowOf).filter((row) => row !== null);
  const nodesIn = ({ items }: typeof found.left) => items.map(treeNodeOf).filter((node) => node !== null);
  return {
    ancestorId: found.ancestorId,
    commonTurns: found.commonTurns,
    pairs: alignTurns(rowsIn(found.left), rowsIn(found.right)),
    leftTurns: found.left.turns,
    rightTurns: found.right.turns,
    more: found.left.more || found.right.more,
    differences: differencesOf(found.left.settings, found.right.settings),
    leftNodes: nodesIn(found.left),
    rightNodes: nodesIn(found.right),
  };
}
