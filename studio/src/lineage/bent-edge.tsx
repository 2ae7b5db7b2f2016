import { BaseEdge, type Edge, type EdgeProps } from "@xyflow/react";
import type { ReactNode } from "react";
import { NODE_HEIGHT, type Place } from "./lay-out-lineage.ts";

/** An arrow of the graph, with the points it goes through. */
export type BentFlowEdge = Edge<{ readonly bends: readonly Place[] }, "bent">;

/** An arrow from a session to one that was made of it, past those that stand between them. */
export function BentEdge(props: EdgeProps<BentFlowEdge>): ReactNode {
  const { sourceX, sourceY, targetX, targetY, data, markerEnd, label } = props;
  const bends = data?.bends ?? [];
  // Straight down beside a session, and in a curve from one layer to the next.
  const stops = [
    ...bends.flatMap(({ x, y }) => [
      { x, y },
      { x, y: y + NODE_HEIGHT },
    ]),
    { x: targetX, y: targetY },
  ];
  let path = `M ${sourceX},${sourceY}`;
  let from: Place = { x: sourceX, y: sourceY };
  for (const to of stops) {
    const middle = (from.y + to.y) / 2;
    path += to.x === from.x ? ` L ${to.x},${to.y}` : ` C ${from.x},${middle} ${to.x},${middle} ${to.x},${to.y}`;
    from = to;
  }
  // Before its end, where it is clear whose it is.
  const before = bends.at(-1);
  const start = before === undefined ? { x: sourceX, y: sourceY } : { x: before.x, y: before.y + NODE_HEIGHT };
  return (
    <BaseEdge
      id={props.id}
      path={path}
      {...(markerEnd === undefined ? {} : { markerEnd })}
      label={label}
      labelX={(start.x + targetX) / 2}
      labelY={(start.y + targetY) / 2}
      labelStyle={LABEL}
      labelBgPadding={[4, 2]}
    />
  );
}

const LABEL = { fill: "var(--ink-soft)", fontSize: "0.75rem" };
