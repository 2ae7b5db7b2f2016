import { Background, Controls, MarkerType, ReactFlow } from "@xyflow/react";
import { type ReactNode, useMemo } from "react";
import type { LineageView } from "skein/client";
import { BentEdge, type BentFlowEdge } from "./bent-edge.tsx";
import { kindOf, titleOf } from "./describe-session.ts";
import { arrowId, layOutLineage, NODE_HEIGHT, NODE_WIDTH } from "./lay-out-lineage.ts";
import { SessionNode, type SessionFlowNode } from "./session-node.tsx";
import "@xyflow/react/dist/style.css";

const NODE_TYPES = { session: SessionNode };
const EDGE_TYPES = { bent: BentEdge };
/** From this number on, only the visible sessions are rendered. */
const MANY = 150;
const FIT = { maxZoom: 1, padding: 0.15 } as const;

/** The sessions of a lineage as a graph: parents at the top, an edge from each parent to its child. */
export function LineageGraph({
  lineage,
  currentId,
}: {
  readonly lineage: LineageView;
  readonly currentId: string;
}): ReactNode {
  const { nodes, edges } = useMemo(() => elementsOf(lineage, currentId), [lineage, currentId]);
  // The view is fitted again only if sessions or edges were added, not for changed sums.
  const shape = lineage.edges.length + lineage.nodes.length;
  return (
    <div className="lineage-graph">
      <div className="lineage-frame">
        <ReactFlow
          key={`${currentId}|${shape}`}
          nodes={nodes}
          edges={edges}
          nodeTypes={NODE_TYPES}
          edgeTypes={EDGE_TYPES}
          fitView
          fitViewOptions={FIT}
          minZoom={0.05}
          maxZoom={2}
          nodesDraggable={false}
          nodesConnectable={false}
          nodesFocusable={false}
          edgesFocusable={false}
          elementsSelectable={false}
          zoomOnScroll={false}
          zoomOnDoubleClick={false}
          preventScrolling={false}
          onlyRenderVisibleElements={nodes.length > MANY}
          proOptions={{ hideAttribution: true }}
          aria-label="Graph of the sessions"
        >
          <Background gap={24} />
          <Controls showInteractive={false} fitViewOptions={FIT} />
        </ReactFlow>
      </div>
    </div>
  );
}

function elementsOf(lineage: LineageView, currentId: string): { nodes: SessionFlowNode[]; edges: BentFlowEdge[] } {
  const { points, bends } = layOutLineage(lineage);
  const byId = new Map(lineage.nodes.map((node) => [node.id, node]));
  const nodes = lineage.nodes.map(
    (session): SessionFlowNode => ({
      id: session.id,
      type: "session",
      position: points.get(session.id) ?? { x: 0, y: 0 },
      width: NODE_WIDTH,
      height: NODE_HEIGHT,
      data: { session, title: titleOf(session, byId), current: session.id === currentId },
    }),
  );
  const edges = lineage.edges.map(({ parent, child }): BentFlowEdge => {
    const node = byId.get(child);
    const missing = byId.get(parent)?.lineage === null;
    return {
      id: arrowId({ parent, child }),
      type: "bent",
      data: { bends: bends.get(arrowId({ parent, child })) ?? [] },
      source: parent,
      target: child,
      markerEnd: { type: MarkerType.ArrowClosed, color: "var(--ink-soft)" },
      ...(node === undefined ? {} : { label: kindOf(node) }),
      ...(missing ? { className: "lineage-edge-missing" } : {}),
    };
  });
  return { nodes, edges };
}
