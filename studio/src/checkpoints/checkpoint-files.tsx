import { type ReactNode, useMemo, useState } from "react";
import type { CheckpointDiff } from "skein/client";
import type { SessionTurn } from "../../../src/session/state.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { DiffView } from "../transcript/diff-view.tsx";
import { type AskedFile, askedEdits } from "./asked-edits.ts";

/** The files that differ, where that is known; otherwise those that the added turns asked to change. */
export function CheckpointFiles({
  files,
  turns,
}: {
  readonly files: CheckpointDiff["files"];
  readonly turns: readonly SessionTurn[];
}): ReactNode {
  const asked = useMemo(() => askedEdits(turns), [turns]);
  return (
    <div>
      <h3>Files</h3>
      {files === null && asked.length === 0 && (
        <p className="small soft">
          Not known: there are no two snapshots to compare, and the added turns ask for no change of a file.
        </p>
      )}
      {files === null && asked.length > 0 && (
        <p className="small soft">
          There are no two snapshots to compare. In the turns that were added, tools were asked to change:
        </p>
      )}
      {files?.length === 0 && <p className="small soft">No file is different.</p>}
      <ul className="checkpoints-turns small">
        {files?.map(({ path, change }) => (
          <li key={path}>
            <span className="tag">{change}</span> <code>{visibleText(path)}</code>
          </li>
        ))}
        {asked.map((file) => (
          <Asked key={file.path} file={file} />
        ))}
      </ul>
    </div>
  );
}

function Asked({ file: { path, edits } }: { readonly file: AskedFile }): ReactNode {
  const [open, setOpen] = useState(false);
  return (
    <li>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <code>{visibleText(path)}</code>{" "}
          <span className="soft">{edits.length === 1 ? "1 change" : `${edits.length} changes`}</span>
        </summary>
        {open && edits.map((edit, index) => <DiffView key={index} edit={edit} />)}
      </details>
    </li>
  );
}
