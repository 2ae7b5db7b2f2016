import { type ReactNode, useState } from "react";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import { useRequest } from "../request/use-request.ts";
import type { Comparison, Side } from "./read-comparison.ts";
import { TurnCard } from "./turn-card.tsx";
import { turnRowOf } from "./turn-row.ts";

/** The last entries are enough to recognize the common part; the transcript has the rest. */
const NODES_MAX = 100;

/** The common part of both sides, collapsed. */
export function CommonPart({
  side,
  comparison: { ancestorId, commonTurns },
}: {
  readonly side: Side;
  readonly comparison: Comparison;
}): ReactNode {
  const [open, setOpen] = useState(false);
  if (ancestorId === null) {
    return <p className="compare-common soft">The two sides have nothing in common.</p>;
  }
  return (
    <div className="compare-common">
      <button type="button" className="button button-plain" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span aria-hidden="true">{open ? "▾" : "▸"}</span>
        {commonTurns} {commonTurns === 1 ? "turn" : "turns"} in common
      </button>
      {open && <CommonTurns side={side} ancestorId={ancestorId} />}
    </div>
  );
}

function CommonTurns({ side, ancestorId }: { readonly side: Side; readonly ancestorId: string }): ReactNode {
  const client = useClient();
  const { id } = side.session.header;
  const page = useRequest(`${id}|${ancestorId}`, (signal) =>
    client.sessions.path(id, { leafId: ancestorId, limit: NODES_MAX }, { signal }),
  );
  return (
    <RequestBoundary requested={page} what="the common turns">
      {({ items, next }) => (
        <>
          {next !== null && <p className="small soft">The last {NODES_MAX} of these entries:</p>}
          <ol className="compare-common-turns" aria-label="Turns in common">
            {items
              .map(turnRowOf)
              .filter((row) => row !== null)
              .map((row) => (
                <li key={row.id}>
                  <TurnCard row={row} pieces={null} />
                </li>
              ))}
          </ol>
        </>
      )}
    </RequestBoundary>
  );
}
