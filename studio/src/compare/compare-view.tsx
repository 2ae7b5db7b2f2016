import type { ReactNode } from "react";
import type { TreeView } from "skein/client";
import { RequestBoundary } from "../request/request-boundary.tsx";
import { useClient } from "../request/use-client.ts";
import type { SessionProps } from "../session/session-props.ts";
import { goTo } from "../shell/route.ts";
import { useRevised } from "../request/use-revised.ts";
import { BranchComparison } from "./branch-comparison.tsx";
import { OtherSession } from "./other-session.tsx";
import { leavesOf } from "./paths.ts";
import { readRelatives, type Relatives } from "./read-relatives.ts";
import { SidePicker } from "./side-picker.tsx";
import "./compare.css";

/** Two branches or forks side by side, and their merge. */
export function CompareView(props: SessionProps): ReactNode {
  const { session, live, options } = props;
  const client = useClient();
  const { id } = session.header;
  const keep = [options.left, options.with].filter((chosen) => chosen !== undefined);
  const requested = useRevised(id, `${live.revision} ${keep.join(" ")}`, async (signal) => {
    const [tree, relatives] = await Promise.all([
      client.sessions.tree(id, { folded: true, keep, signal }),
      readRelatives(client, session, signal),
    ]);
    return { tree, relatives };
  });
  // A new fork appends nothing to this session, so its branches must be reloaded.
  const change = (): void => {
    live.reload();
    requested.reload();
  };
  return (
    <section className="compare" aria-label="Compare and merge">
      <RequestBoundary requested={requested} what="the branches">
        {({ tree, relatives }) => <Sides {...props} tree={tree} relatives={relatives} onChange={change} />}
      </RequestBoundary>
    </section>
  );
}

function Sides({
  session,
  options,
  tree,
  relatives,
  onChange,
}: SessionProps & {
  readonly tree: TreeView;
  readonly relatives: Relatives;
  readonly onChange: () => void;
}): ReactNode {
  const known = new Set(tree.nodes.map((node) => node.id));
  const leftId = options.left !== undefined && known.has(options.left) ? options.left : tree.leafId;
  const withId = options.with ?? defaultWith(tree, relatives, leftId);
  const left = { session, tree, leafId: leftId };
  // Keeps both sides when another branch is activated.
  const stay = (): void => {
    if (leftId !== null && withId !== null) {
      goTo({ page: "session", id: session.header.id, view: "compare", options: { left: leftId, with: withId } });
    }
    onChange();
  };
  return (
    <>
      <SidePicker session={session} tree={tree} relatives={relatives} leftId={leftId} withId={withId} />
      {withId === null && (
        <div className="empty">
          <h2>There is only one branch</h2>
          <p className="soft">
            Branch from an earlier turn in the transcript, or fork the session, to compare both here. You can also
            compare any other session by its id.
          </p>
        </div>
      )}
      {withId !== null && known.has(withId) && (
        <BranchComparison
          left={left}
          right={{ session, tree, leafId: withId }}
          moving={`${options.left ?? ""}|${withId}`}
          onMove={stay}
          onChange={onChange}
        />
      )}
      {withId !== null && !known.has(withId) && (
        <OtherSession key={withId} id={withId}>
          {(right) => (
            <BranchComparison
              left={left}
              right={right}
              moving={`${options.left ?? ""}|${withId}`}
              onMove={stay}
              onChange={onChange}
            />
          )}
        </OtherSession>
      )}
    </>
  );
}

/** The most likely side: another branch, else a fork, else the session's parent. */
function defaultWith(tree: TreeView, { forks, parent }: Relatives, leftId: string | null): string | null {
  const leaf = leavesOf(tree).find(({ id }) => id !== leftId);
  return leaf?.id ?? forks[0]?.header.id ?? parent?.header.id ?? null;
}
