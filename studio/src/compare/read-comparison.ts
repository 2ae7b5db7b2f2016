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

/** Two branches from where they part. */
export interface Comparison {
  /** The last node that both have; null when they have none in common. */
  readonly ancestorId: string | null;
  /** How many turns they have in common. */
  readonly commonTurns: number;
  readonly pairs: readonly TurnPair[];
  /** How many turns each side has since they parted. */
  readonly leftTurns: number;
  readonly rightTurns: number;
  /** Whether a side has more nodes than were read. */
  readonly more: boolean;
  readonly differences: readonly ValueDifference[];
  /** The nodes of each side since they parted, as far as they were read. */
  readonly leftNodes: readonly TreeNodeView[];
  readonly rightNodes: readonly TreeNodeView[];
}

/** Reads two branches from their common ancestor on, at most so many nodes of each. */
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
