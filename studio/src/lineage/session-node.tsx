import { Handle, type Node, type NodeProps, Position, useReactFlow } from "@xyflow/react";
import type { FocusEvent, ReactNode } from "react";
import type { LineageNodeView } from "skein/client";
import { visibleText } from "../markdown/visible-text.ts";
import { formatCompact, formatCost, fullTime } from "../sessions/list/amounts.ts";
import { addressOf } from "../shell/route.ts";
import { kindOf, shortId } from "./describe-session.ts";
import { NODE_HEIGHT, NODE_WIDTH } from "./lay-out-lineage.ts";

/** A session in the graph. */
export type SessionFlowNode = Node<
  { readonly session: LineageNodeView; readonly title: string; readonly current: boolean },
  "session"
>;

/** A session of the graph: its title, kind, status and tokens. */
export function SessionNode(props: NodeProps<SessionFlowNode>): ReactNode {
  const { session, current } = props.data;
  const flow = useReactFlow();
  const show = (event: FocusEvent): void => {
    // Scrolls a node with keyboard focus into view.
    if (!event.target.matches(":focus-visible")) return;
    const x = props.positionAbsoluteX + NODE_WIDTH / 2;
    const y = props.positionAbsoluteY + NODE_HEIGHT / 2;
    void flow.setCenter(x, y, { zoom: flow.getZoom() });
  };
  const missing = session.lineage === null;
  const look = `lineage-node nopan lineage-kind-${kindOf(session)}${current ? " lineage-node-current" : ""}`;
  return (
    <>
      <Handle type="target" position={Position.Top} isConnectable={false} />
      {missing ? (
        <div className={`${look} lineage-node-missing`}>
          <Face session={session} title={props.data.title} />
        </div>
      ) : (
        <a
          className={look}
          href={addressOf({ page: "session", id: session.id, view: "talk", options: {} })}
          aria-current={current ? "page" : undefined}
          title={session.createdAt === null ? undefined : fullTime(session.createdAt)}
          onFocus={show}
        >
          <Face session={session} title={props.data.title} />
        </a>
      )}
      <Handle type="source" position={Position.Bottom} isConnectable={false} />
    </>
  );
}

function Face({ session, title }: { readonly session: LineageNodeView; readonly title: string }): ReactNode {
  const { id, status, usage, cost } = session;
  if (session.lineage === null) {
    return (
      <>
        <span className="lineage-node-name">{visibleText(shortId(id))}</span>
        <span className="small soft">deleted, or not visible to you</span>
      </>
    );
  }
  return (
    <>
      <span className="lineage-node-name">{visibleText(title)}</span>
      <span className="lineage-node-line">
        <span className="tag lineage-tag">{kindOf(session)}</span>
        {status !== null && status !== "active" && <span className="tag">{status}</span>}
        <code className="soft">{visibleText(shortId(id))}</code>
      </span>
      <span className="lineage-node-line small soft">
        {formatCompact(usage?.totalTokens ?? 0)} tokens · {formatCost(cost ?? 0)}
      </span>
    </>
  );
}
