import { type ReactNode, useEffect, useState } from "react";
import type { MergeRequest, MergeView, TreeNodeView } from "skein/client";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { MergeOutcome } from "./merge-outcome.tsx";
import { MergeStrategyFields } from "./merge-strategy-fields.tsx";
import type { Side } from "./read-comparison.ts";
import { sessionTitle } from "./read-relatives.ts";

/** How a merge is to be done. */
export interface MergeChoice {
  readonly strategy: "append" | "selective" | "summary";
  readonly turnIds: ReadonlySet<string>;
  readonly model: string;
}

/** Chooses how to merge a fork, shows what that would do, and does it. */
export function MergeForm({
  target,
  branch,
  nodes,
  more,
  onChange,
}: {
  readonly target: Side;
  readonly branch: Side;
  /** What the fork has more than the session it is merged into, as far as it was read. */
  readonly nodes: readonly TreeNodeView[];
  /** Whether there are more than were read. */
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
  // What was shown before counts only for what it was shown for.
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
  // Where only the sessions moved on, the same is looked at again, unless a model would be asked for it.
  const outdated = preview?.asked === asked && fresh === null && choice.strategy !== "summary";
  const again = outdated && !busy && error === null;
  useEffect(() => {
    if (again) void look.run();
  }, [again]);
  return (
    <div className="compare-merge-form">
      <p>
        What <strong>{visibleText(sessionTitle(branch.session))}</strong> said since it was forked goes to the end of
        the active branch of <strong>{visibleText(sessionTitle(target.session))}</strong>. The fork stays as it is.
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
        {fresh === null && done === null && <span className="small soft">See the preview first.</span>}
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
