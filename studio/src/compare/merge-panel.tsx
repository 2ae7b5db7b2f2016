import type { ReactNode } from "react";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRequest } from "../request/use-request.ts";
import { BranchAdvice } from "./branch-advice.tsx";
import { MergeForm } from "./merge-form.tsx";
import type { Comparison, Side } from "./read-comparison.ts";
import { isForkOf } from "./read-relatives.ts";
import "./merge-panel.css";

/** Merges a fork into the session it was forked from, whichever side each is on. */
export function MergePanel({
  left,
  right,
  comparison,
  onChange,
}: {
  readonly left: Side;
  readonly right: Side;
  readonly comparison: Comparison;
  readonly onChange: () => void;
}): ReactNode {
  const client = useClient();
  const [leftId, rightId] = [left.session.header.id, right.session.header.id];
  const direction = useRequest(`${leftId}|${rightId}`, async (signal) => {
    if (leftId === rightId) return "branches";
    if (await isForkOf(client, right.session, leftId, signal)) return "right-to-left";
    return (await isForkOf(client, left.session, rightId, signal)) ? "left-to-right" : "unrelated";
  });
  return (
    <section className="compare-merge" aria-label="Merge">
      <h2>Merge</h2>
      <RequestBoundary requested={direction} what="how the two are related">
        {(known) => {
          if (known === "branches")
            return <BranchAdvice side={left} ancestorId={comparison.ancestorId} onChange={onChange} />;
          if (known === "unrelated") {
            return (
              <p className="soft">
                Neither of these sessions is a fork of the other, so they can be compared but not merged. A merge
                appends the turns of a fork to the session that it was forked from.
              </p>
            );
          }
          const [target, branch, nodes] =
            known === "right-to-left" ? [left, right, comparison.rightNodes] : [right, left, comparison.leftNodes];
          return (
            <MergeForm
              key={branch.session.header.id}
              target={target}
              branch={branch}
              nodes={nodes}
              more={comparison.more}
              onChange={onChange}
            />
          );
        }}
      </RequestBoundary>
    </section>
  );
}
