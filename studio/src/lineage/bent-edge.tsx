import { BaseEdge, type Edge, type EdgeProps } from "@xyflow/react";
import type { ReactNode } from "react";
import { NODE_HEIGHT, type Point } from "./lay-out-lineage.ts";

/** An edge of the graph, with the points it goes through. */
export type BentFlowEdge = Edge<{ readonly bends: readonly Point[] }, "bent">;

/** An edge from a session to one that was made from it, around the sessions between them. */
export function BentEdge(props: EdgeProps<BentFlowEdge>): ReactNode {
  const { sourceX, sourceY, targetX, targetY, data, markerEnd, label } = props;
  const bends = data?.bends ?? [];
  // Vertical beside a session, curved from one layer to the next.
  const stops = [
    ...bends.flatMap(({ x, y }) => [
      { x, y },
      { x, y: y + NODE_HEIGHT },
    ]),
    { x: targetX, y: targetY },
  ];
  let path = `M ${sourceX},${sourceY}`;
  let from: Point = { x: sourceX, y: sourceY };
  for (const to of stops) {
    const middle = (from.y + to.y) / 2;
    path += to.x === from.x ? ` L ${to.x},${to.y}` : ` C ${from.x},${middle} ${to.x},${middle} ${to.x},${to.y}`;
    from = to;
  }
  // The label is placed where the edge passes a session, as other edges may be near its ends.
  const pass = bends.at(-1);
  const middle = { x: (sourceX + targetX) / 2, y: (sourceY + targetY) / 2 };
  const at = pass === undefined ? middle : { x: pass.x, y: pass.y + NODE_HEIGHT / 2 };
  return (
    <BaseEdge
      id={props.id}
      path={path}
      {...(markerEnd === undefined ? {} : { markerEnd })}
      label={label}
      labelX={at.x}
      labelY={at.y}
      labelStyle={LABEL}
      labelBgPadding={[4, 2]}
    />
  );
}

const LABEL = { fill: "var(--ink-soft)", fontSize: "0.75rem" };
