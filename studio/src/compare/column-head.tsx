import type { ReactNode } from "react";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { addressOf } from "../shell/route.ts";
import { branchTitle, leavesOf } from "./paths.ts";
import type { Side } from "./read-comparison.ts";
import { sessionTitle } from "./read-relatives.ts";

/** The heading of a side, with its actions. */
export function ColumnHead({
  letter,
  side: { session, tree, leafId },
  turns,
  onChange,
}: {
  readonly letter: "A" | "B";
  readonly side: Side;
  readonly turns: number;
  readonly onChange: () => void;
}): ReactNode {
  const client = useClient();
  const { id } = session.header;
  const activate = useAction(async () => {
    await client.sessions.moveLeaf(id, { entryId: leafId });
    onChange();
  });
  const active = leafId === tree.leafId;
  const options: Record<string, string> = leafId === null ? {} : { entry: leafId };
  return (
    <header className="compare-head">
      <h2 className="compare-title">
        <span className={`compare-letter compare-letter-${letter === "A" ? "left" : "right"}`}>{letter}</span>
        <span className="compare-name" title={visibleText(branchTitle(tree, leafId))}>
          {visibleText(branchTitle(tree, leafId))}
        </span>
      </h2>
      <p className="small soft">
        <a href={addressOf({ page: "session", id, view: "talk", options })}>{visibleText(sessionTitle(session))}</a>
        {` · ${turns} ${turns === 1 ? "turn" : "turns"} only here `}
        {active && leavesOf(tree).length > 1 && <span className="tag">active branch</span>}
      </p>
      {!active && (
        <p>
          <button type="button" className="button" disabled={activate.busy} onClick={() => void activate.run()}>
            Make {letter} the active branch
          </button>
        </p>
      )}
      {activate.error !== null && (
        <p role="alert" className="compare-refused">
          {activate.error.message}
        </p>
      )}
    </header>
  );
}
