import { type FormEvent, type ReactNode, useId, useState } from "react";
import type { SessionView, TreeView } from "skein/client";
import { visibleText } from "../markdown/visible-text.ts";
import { goTo } from "../shell/route.ts";
import { branchTitle, leavesOf } from "./paths.ts";
import { type Relatives, sessionTitle } from "./read-relatives.ts";

const BY_ID = "by-id";
const TITLE_CHARACTERS = 60;

/** Chooses the two sides; the URL keeps the choice. */
export function SidePicker({
  session,
  tree,
  relatives: { forks, parent },
  leftId,
  withId,
}: {
  readonly session: SessionView;
  readonly tree: TreeView;
  readonly relatives: Relatives;
  readonly leftId: string | null;
  readonly withId: string | null;
}): ReactNode {
  const [asking, setAsking] = useState(false);
  const leaves = leavesOf(tree);
  const known = new Set([...leaves, ...forks.map(({ header }) => header)].map(({ id }) => id));
  const choose = (left: string | null, right: string | null): void => {
    const options = {
      ...(left === null || left === tree.leafId ? {} : { left }),
      ...(right === null ? {} : { with: right }),
    };
    goTo({ page: "session", id: session.header.id, view: "compare", options });
  };
  const branches = leaves.map(({ id }) => (
    <option key={id} value={id}>
      {optionText(`${branchTitle(tree, id)}${id === tree.leafId ? " (active)" : ""}`)}
    </option>
  ));
  const isOther = withId !== null && !known.has(withId) && withId !== parent?.header.id;
  return (
    <div className="compare-picker">
      <label>
        <span className="compare-letter compare-letter-left">A</span> This session
        <select className="field" value={leftId ?? ""} onChange={(event) => choose(event.target.value, withId)}>
          {leftId !== null && !known.has(leftId) && (
            <option value={leftId}>{optionText(branchTitle(tree, leftId))}</option>
          )}
          {leaves.length === 0 && <option value="">no turns yet</option>}
          {branches}
        </select>
      </label>
      <button
        type="button"
        className="button"
        aria-label="Swap the two sides"
        title="Swap the two sides"
        disabled={withId === null || leftId === null || !tree.nodes.some(({ id }) => id === withId)}
        onClick={() => choose(withId, leftId)}
      >
        ⇄
      </button>
      <label>
        <span className="compare-letter compare-letter-right">B</span> Compare with
        <select
          className="field"
          value={asking ? BY_ID : (withId ?? "")}
          onChange={(event) => {
            setAsking(event.target.value === BY_ID);
            if (event.target.value !== BY_ID) choose(leftId, event.target.value);
          }}
        >
          {withId === null && <option value="">choose …</option>}
          {isOther && (
            <option value={withId}>
              {tree.nodes.some(({ id }) => id === withId) ? optionText(branchTitle(tree, withId)) : `Session ${withId}`}
            </option>
          )}
          {leaves.length > 0 && <optgroup label="Branches of this session">{branches}</optgroup>}
          {forks.length > 0 && (
            <optgroup label="Forks">
              {forks.map((fork) => (
                <option key={fork.header.id} value={fork.header.id}>
                  {optionText(sessionTitle(fork))}
                </option>
              ))}
            </optgroup>
          )}
          {parent !== null && (
            <optgroup label="Forked from">
              <option value={parent.header.id}>{optionText(sessionTitle(parent))}</option>
            </optgroup>
          )}
          <option value={BY_ID}>Another session …</option>
        </select>
      </label>
      {asking && (
        <IdForm
          onChoose={(id) => {
            setAsking(false);
            choose(leftId, id);
          }}
        />
      )}
    </div>
  );
}

function IdForm({ onChoose }: { readonly onChoose: (id: string) => void }): ReactNode {
  const [id, setId] = useState("");
  const field = useId();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (id.trim() !== "") onChoose(id.trim());
  };
  return (
    <form className="compare-by-id" onSubmit={submit}>
      <label htmlFor={field}>Id of the session</label>
      <input id={field} className="field" value={id} onChange={(event) => setId(event.target.value)} />
      <button type="submit" className="button" disabled={id.trim() === ""}>
        Compare
      </button>
    </form>
  );
}

function optionText(text: string): string {
  const characters = [...visibleText(text.slice(0, 4 * TITLE_CHARACTERS))];
  return characters.length > TITLE_CHARACTERS
    ? `${characters.slice(0, TITLE_CHARACTERS).join("")}…`
    : characters.join("");
}
