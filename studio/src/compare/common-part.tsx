import { type ReactNode, useState } from "react";
import { Shown } from "../request/shown.tsx";
import { useClient } from "../request/use-client.ts";
import { useRequest } from "../request/use-request.ts";
import type { Comparison, Side } from "./read-comparison.ts";
import { TurnCard } from "./turn-card.tsx";
import { turnRowOf } from "./turn-row.ts";

/** The end of the common beginning is enough to know where one is; the transcript has the rest. */
const NODES_MAX = 100;

/** What both sides begin with, folded. */
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
    <Shown requested={page} what="the common turns">
      {({ items, next }) => (
        <>
          {next !== null && <p className="small soft">The last {NODES_MAX} entries of them:</p>}
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
    </Shown>
  );
}
