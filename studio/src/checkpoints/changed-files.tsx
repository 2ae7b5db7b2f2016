import { type ReactNode, useState } from "react";
import type { FileChange, FileChanges } from "../../../src/session/sandbox/sandbox.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { DiffView } from "../transcript/content/diff-view.tsx";
import { Fold } from "../transcript/content/fold.tsx";
import { editOf, whyNotShown } from "./file-change.ts";

const PAGE = 100;

/** The files that differ between two checkpoints, each with its changes. */
export function ChangedFiles({ files: { changes, truncated } }: { readonly files: FileChanges }): ReactNode {
  const [shown, setShown] = useState(PAGE);
  const count = `${changes.length.toLocaleString("en")}${truncated ? " and more" : ""}`;
  return (
    <div>
      <h3>Files {changes.length > 0 && <span className="soft">({count})</span>}</h3>
      {changes.length === 0 && <p className="small soft">No file differs.</p>}
      <ul className="checkpoints-turns small" aria-label="Files that differ">
        {changes.slice(0, shown).map((change) => (
          <Changed key={change.path} change={change} />
        ))}
      </ul>
      {changes.length > shown && (
        <button type="button" className="button small" onClick={() => setShown(shown + 5 * PAGE)}>
          Show more files ({(changes.length - shown).toLocaleString("en")} left)
        </button>
      )}
      {truncated && changes.length <= shown && <p className="small soft">More files differ than are listed here.</p>}
    </div>
  );
}

const LOOKS: Readonly<Record<FileChange["change"], string>> = {
  added: "checkpoints-added",
  removed: "checkpoints-removed",
  changed: "",
};

function Changed({ change }: { readonly change: FileChange }): ReactNode {
  const edit = editOf(change);
  const title = (
    <>
      <span className={`tag ${LOOKS[change.change]}`}>{change.change}</span> <code>{visibleText(change.path)}</code>
    </>
  );
  return (
    <li>
      <Fold title={title}>
        {edit === null ? <p className="soft">{whyNotShown(change)}</p> : <DiffView edit={edit} />}
      </Fold>
    </li>
  );
}
