import type { Client, SessionView, TreeNodeView, TreeView } from "skein/client";
import { alignTurns, type TurnPair } from "./align-turns.ts";
import { commonLength, pathTo } from "./paths.ts";
import { differencesOf, settingsAt, type ValueDifference } from "./settings-at.ts";
import { type TurnRow, turnRowOf } from "./turn-row.ts";

/** One side of a comparison: a branch of a session. */
export interface Side {
  readonly session: SessionView;
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
  /** How many nodes of the longer side are not read yet. */
  readonly unread: number;
  readonly differences: readonly ValueDifference[];
  /** The nodes of each side since they parted. */
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
  const [leftPath, rightPath] = [pathTo(left.tree, left.leafId), pathTo(right.tree, right.leafId)];
  const common = commonLength(leftPath, rightPath);
  const [leftRows, rightRows, leftValues, rightValues] = await Promise.all([
    readRows(client, left.session.header.id, leftPath.slice(common, common + nodesMax), signal),
    readRows(client, right.session.header.id, rightPath.slice(common, common + nodesMax), signal),
    settingsAt(client, left.session, leftPath, signal),
    settingsAt(client, right.session, rightPath, signal),
  ]);
  const [leftNodes, rightNodes] = [leftPath.slice(common), rightPath.slice(common)];
  return {
    ancestorId: leftPath[common - 1]?.id ?? null,
    commonTurns: turnsIn(leftPath.slice(0, common)),
    pairs: alignTurns(leftRows, rightRows),
    leftTurns: turnsIn(leftNodes),
    rightTurns: turnsIn(rightNodes),
    unread: Math.max(0, Math.max(leftNodes.length, rightNodes.length) - nodesMax),
    differences: differencesOf(leftValues, rightValues),
    leftNodes,
    rightNodes,
  };
}

/** The rows of a piece of a path; the server gives the end of a path, so it is asked for the one that ends there. */
export async function readRows(
  client: Client,
  sessionId: string,
  nodes: readonly TreeNodeView[],
  signal: AbortSignal,
): Promise<readonly TurnRow[]> {
  const leafId = nodes.at(-1)?.id;
  if (leafId === undefined) return [];
  const { items } = await client.sessions.path(sessionId, { leafId, limit: nodes.length }, { signal });
  return items.map(turnRowOf).filter((row) => row !== null);
}

function turnsIn(nodes: readonly TreeNodeView[]): number {
  return nodes.filter(({ type }) => type === "message").length;
}
