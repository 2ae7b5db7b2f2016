import { type ReactNode, useState } from "react";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRevised } from "../request/use-revised.ts";
import { ColumnHead } from "./column-head.tsx";
import { CommonPart } from "./common-part.tsx";
import { DifferentValues } from "./different-values.tsx";
import { MergePanel } from "./merge-panel.tsx";
import { type Comparison, readComparison, type Side } from "./read-comparison.ts";
import { TurnPairRow } from "./turn-pair-row.tsx";
import "./branch-comparison.css";

const NODES_FIRST = 60;
const NODES_MORE = 120;
/** The maximum number of nodes of a path that the server returns at a time. */
const NODES_MAX = 1000;

/** Two sides from their common ancestor on, the settings that differ, and the actions on them. */
export function BranchComparison({
  left,
  right,
  moving,
  onMove,
  onChange,
}: {
  readonly left: Side;
  readonly right: Side;
  /** Identifies the chosen sides; unchanged while they grow. */
  readonly moving: string;
  /** Called when another branch was activated. */
  readonly onMove: () => void;
  readonly onChange: () => void;
}): ReactNode {
  const client = useClient();
  const [nodesMax, setNodesMax] = useState(NODES_FIRST);
  const key = `${left.session.header.id}|${right.session.header.id}|${moving}`;
  const revision = [left, right].map(({ session, leafId }) => `${leafId}:${session.version}`).join("|");
  const requested = useRevised(key, `${revision}|${nodesMax}`, (signal) =>
    readComparison(client, left, right, { nodesMax, signal }),
  );
  return (
    <RequestBoundary requested={requested} what="the comparison">
      {(comparison) => (
        <>
          <CommonPart key={key} side={left} comparison={comparison} />
          <div className="compare-columns">
            <ColumnHead letter="A" side={left} turns={comparison.leftTurns} onChange={onMove} />
            <ColumnHead letter="B" side={right} turns={comparison.rightTurns} onChange={onMove} />
          </div>
          <Turns comparison={comparison} />
          {comparison.more && nodesMax < NODES_MAX && (
            <p className="compare-more">
              <button
                type="button"
                className="button"
                onClick={() => setNodesMax((count) => Math.min(NODES_MAX, count + NODES_MORE))}
              >
                Show more turns
              </button>
            </p>
          )}
          {comparison.more && nodesMax >= NODES_MAX && (
            <p className="compare-more soft">Only the first {NODES_MAX} entries of each side are compared.</p>
          )}
          <DifferentValues differences={comparison.differences} />
          <MergePanel left={left} right={right} comparison={comparison} onChange={onChange} />
        </>
      )}
    </RequestBoundary>
  );
}

function Turns({ comparison: { pairs, leftTurns, rightTurns } }: { readonly comparison: Comparison }): ReactNode {
  if (pairs.length === 0) {
    return (
      <p className="compare-none soft">
        {leftTurns + rightTurns === 0 ? "Both sides are equal." : "There are no turns after the common ancestor."}
      </p>
    );
  }
  return (
    <ol className="compare-turns" aria-label="Turns after the common ancestor">
      {pairs.map((pair) => (
        <TurnPairRow key={`${pair.left?.id ?? ""}|${pair.right?.id ?? ""}`} pair={pair} />
      ))}
    </ol>
  );
}
