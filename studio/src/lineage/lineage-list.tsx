import type { ReactNode } from "react";
import type { LineageNodeView, LineageView } from "skein/client";
import { visibleText } from "../markdown/visible-text.ts";
import { ageOf, formatCompact, formatCost, fullTime } from "../sessions/list/amounts.ts";
import { addressOf } from "../shell/route.ts";
import { kindOf, type SessionsById, shortId, titleOf } from "./describe-session.ts";

const COLUMNS = ["Session", "Made by", "From", "Status", "Tokens", "Cost", "Made"];

/** The sessions of a lineage as a table, as an alternative to the graph. */
export function LineageList({
  lineage,
  currentId,
}: {
  readonly lineage: LineageView;
  readonly currentId: string;
}): ReactNode {
  const byId = new Map(lineage.nodes.map((node) => [node.id, node]));
  return (
    <div className="lineage-scroll">
      <table className="lineage-table">
        <caption className="only-for-readers">Sessions of the lineage</caption>
        <thead>
          <tr>
            {COLUMNS.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lineage.nodes.map((node) => (
            <tr key={node.id} className={node.id === currentId ? "lineage-row-current" : undefined}>
              <th scope="row">
                <SessionLink node={node} title={titleOf(node, byId)} current={node.id === currentId} />
              </th>
              <td>
                <span className="tag">{kindOf(node)}</span>
              </td>
              <td className="lineage-parents">
                <Parents ids={node.lineage?.parents ?? []} byId={byId} />
              </td>
              <td>{node.status ?? "unknown"}</td>
              <td className="lineage-number">{node.usage === null ? "" : formatCompact(node.usage.totalTokens)}</td>
              <td className="lineage-number">{node.cost === null ? "" : formatCost(node.cost)}</td>
              <td>
                {node.createdAt !== null && (
                  <time dateTime={node.createdAt} title={fullTime(node.createdAt)}>
                    {ageOf(node.createdAt, Date.now())}
                  </time>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function SessionLink({
  node,
  title,
  current,
}: {
  readonly node: LineageNodeView;
  readonly title: string;
  readonly current: boolean;
}): ReactNode {
  if (node.lineage === null) {
    return (
      <>
        <code title={visibleText(node.id)}>{visibleText(shortId(node.id))}</code>{" "}
        <span className="small soft">deleted, or not visible to you</span>
      </>
    );
  }
  return (
    <>
      <a
        href={addressOf({ page: "session", id: node.id, view: "talk", options: {} })}
        aria-current={current ? "page" : undefined}
      >
        {visibleText(title)}
      </a>{" "}
      <code className="soft">{visibleText(shortId(node.id))}</code>
      {current && (
        <>
          {" "}
          <span className="tag">this one</span>
        </>
      )}
    </>
  );
}

function Parents({ ids, byId }: { readonly ids: readonly string[]; readonly byId: SessionsById }): ReactNode {
  return ids.map((id, index) => {
    const node = byId.get(id);
    const text = node === undefined || node.lineage === null ? "" : visibleText(titleOf(node, byId));
    return (
      <span key={id}>
        {index > 0 && ", "}
        {text} <code className="soft">{visibleText(shortId(id))}</code>
      </span>
    );
  });
}
