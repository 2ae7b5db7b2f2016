import type { ReactNode } from "react";
import type { MergeView, TreeNodeView } from "skein/client";
import { visibleText } from "../markdown/visible-text.ts";
import { addressOf } from "../shell/route.ts";

const REASONS = {
  present: "the session already has it",
  unknown: "the fork has no such turn",
  torn: "it is only the call or only the result of a tool; pick the other one as well",
} as const;
/** Of longer lists, only the number of further items is shown. */
const ITEMS_MAX = 50;
const VALUE_CHARACTERS_MAX = 500;

/** The result or the preview of a merge. */
export function MergeOutcome({
  view: { appended, skipped, conflicts },
  nodes,
  targetId,
  done,
}: {
  readonly view: MergeView;
  /** The nodes of the fork, to describe turns. */
  readonly nodes: readonly TreeNodeView[];
  readonly targetId: string;
  readonly done: boolean;
}): ReactNode {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const nameOf = (id: string): string => describe(byId.get(id), id);
  const last = appended.at(-1);
  return (
    <div className={done ? "compare-outcome compare-outcome-done" : "compare-outcome"}>
      <h3>{done ? "Merged" : "Preview"}</h3>
      {done && (
        <p>
          <a
            href={addressOf({
              page: "session",
              id: targetId,
              view: "talk",
              options: last === undefined ? {} : { entry: last },
            })}
          >
            Open the result
          </a>
        </p>
      )}
      <List
        title={done ? "Appended" : "To append"}
        none="There is nothing new."
        items={appended.map((id) => ({ id, text: nameOf(id) }))}
      />
      {skipped.length > 0 && (
        <List
          title="Skipped"
          none=""
          items={skipped.map(({ turnId, reason }) => ({ id: turnId, text: `${nameOf(turnId)} (${REASONS[reason]})` }))}
        />
      )}
      {conflicts.length > 0 && (
        <>
          <h4>Conflicts ({conflicts.length})</h4>
          <p className="small soft">Variables that both sides changed. The fork's value is used.</p>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard. */}
          <div className="compare-scroll" tabIndex={0}>
            <table aria-label="Conflicts">
              <thead>
                <tr>
                  {["Variable", "Before", "Session", "Fork"].map((name) => (
                    <th key={name} scope="col">
                      {name}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {conflicts.map(({ key, base, parent, branch }) => (
                  <tr key={key}>
                    <th scope="row">{visibleText(key)}</th>
                    <td>{valueText(base)}</td>
                    <td>{valueText(parent)}</td>
                    <td>{valueText(branch)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </>
      )}
    </div>
  );
}

function List({
  title,
  none,
  items,
}: {
  readonly title: string;
  readonly none: string;
  readonly items: readonly { readonly id: string; readonly text: string }[];
}): ReactNode {
  return (
    <>
      <h4>
        {title} ({items.length})
      </h4>
      {items.length === 0 && <p className="soft">{none}</p>}
      <ul aria-label={title}>
        {items.slice(0, ITEMS_MAX).map(({ id, text }) => (
          <li key={id}>{visibleText(text)}</li>
        ))}
      </ul>
      {items.length > ITEMS_MAX && <p className="small soft">and {items.length - ITEMS_MAX} more</p>}
    </>
  );
}

function describe(node: TreeNodeView | undefined, id: string): string {
  if (node === undefined) return id.includes("/") ? "an entry of the merge itself" : id;
  const what = node.preview || node.toolCalls.join(", ") || node.type;
  return what === node.type ? what : `${node.role ?? node.type}: ${what}`;
}

function valueText(value: unknown): ReactNode {
  if (value === undefined) return <span className="soft">not set</span>;
  const text = JSON.stringify(value);
  return (
    <code className="compare-value">
      {visibleText(text.length > VALUE_CHARACTERS_MAX ? `${text.slice(0, VALUE_CHARACTERS_MAX)}…` : text)}
    </code>
  );
}
