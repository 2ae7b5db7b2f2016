import { type ReactNode, useEffect, useState } from "react";
import type { MergeRequest, MergeView, TreeNodeView } from "skein/client";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { MergeOutcome } from "./merge-outcome.tsx";
import { MergeStrategyFields } from "./merge-strategy-fields.tsx";
import type { Side } from "./read-comparison.ts";
import { sessionTitle } from "./read-relatives.ts";

/** The options of a merge. */
export interface MergeChoice {
  readonly strategy: "append" | "selective" | "summary";
  readonly turnIds: ReadonlySet<string>;
  readonly model: string;
}

/** Chooses how to merge a fork, previews the merge, and executes it. */
export function MergeForm({
  target,
  branch,
  nodes,
  more,
  onChange,
}: {
  readonly target: Side;
  readonly branch: Side;
  /** The nodes of the fork that the target lacks, as far as they were loaded. */
  readonly nodes: readonly TreeNodeView[];
  /** Whether there are more nodes than were loaded. */
  readonly more: boolean;
  readonly onChange: () => void;
}): ReactNode {
  const client = useClient();
  const [choice, setChoice] = useState<MergeChoice>({ strategy: "append", turnIds: new Set(), model: "" });
  const [preview, setPreview] = useState<{ of: string; asked: string; view: MergeView } | null>(null);
  const [done, setDone] = useState<MergeView | null>(null);
  const targetId = target.session.header.id;
  const request = requestOf(branch.session.header.id, choice);
  const asked = JSON.stringify(request);
  // A preview is only valid for the choice and the session versions it was made for.
  const key = `${asked}|${target.session.version}|${branch.session.version}`;
  const look = useAction(async () => {
    setDone(null);
    setPreview({ of: key, asked, view: await client.sessions.merge(targetId, { ...request, dryRun: true }) });
  });
  const merge = useAction(async () => {
    setDone(await client.sessions.merge(targetId, request));
    setPreview(null);
    onChange();
  });
  const fresh = preview !== null && preview.of === key ? preview.view : null;
  const turns = nodes.filter(({ type }) => type === "message");
  const incomplete = choice.strategy === "selective" && choice.turnIds.size === 0;
  const busy = look.busy || merge.busy;
  const ready = !busy && !incomplete && fresh !== null && fresh.appended.length > 0;
  const error = look.error ?? merge.error;
  // If only the sessions have changed, the preview is repeated, unless that would call a model.
  const outdated = preview?.asked === asked && fresh === null && choice.strategy !== "summary";
  const again = outdated && !busy && error === null;
  useEffect(() => {
    if (again) void look.run();
  }, [again]);
  return (
    <div className="compare-merge-form">
      <p>
        The new turns of <strong>{visibleText(sessionTitle(branch.session))}</strong> are appended to the active branch
        of <strong>{visibleText(sessionTitle(target.session))}</strong>. The fork is not changed.
      </p>
      <MergeStrategyFields choice={choice} turns={turns} more={more} onChange={setChoice} />
      <p className="compare-merge-actions">
        <button type="button" className="button" disabled={busy || incomplete} onClick={() => void look.run()}>
          {look.busy ? "Looking …" : "Preview"}
        </button>
        <button
          type="button"
          className={ready ? "button button-primary" : "button"}
          disabled={!ready}
          onClick={() => void merge.run()}
        >
          {merge.busy ? "Merging …" : "Merge"}
        </button>
        {fresh === null && done === null && <span className="small soft">Preview the merge first.</span>}
      </p>
      {error !== null && (
        <p role="alert" className="compare-refused">
          {error.message}
        </p>
      )}
      <div aria-live="polite">
        {fresh !== null && <MergeOutcome view={fresh} nodes={nodes} targetId={targetId} done={false} />}
        {done !== null && <MergeOutcome view={done} nodes={nodes} targetId={targetId} done={true} />}
      </div>
    </div>
  );
}

function requestOf(branchId: string, { strategy, turnIds, model }: MergeChoice): MergeRequest {
  if (strategy === "selective") return { branchId, strategy, turnIds: [...turnIds] };
  return strategy === "summary" && model !== "" ? { branchId, strategy, model } : { branchId, strategy };
}
