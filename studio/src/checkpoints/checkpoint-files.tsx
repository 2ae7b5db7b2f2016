import { type ReactNode, useMemo } from "react";
import type { CheckpointDiff } from "skein/client";
import type { SessionTurn } from "../../../src/session/state/state.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { MAY_NOT, useMay } from "../request/use-me.ts";
import { DiffView } from "../transcript/content/diff-view.tsx";
import { Fold } from "../transcript/content/fold.tsx";
import { type AskedFile, askedEdits } from "./asked-edits.ts";
import { ChangedFiles } from "./changed-files.tsx";

/** The files that differ; if that is unknown, those that the added turns asked to change. */
export function CheckpointFiles({
  diff,
  turns,
}: {
  readonly diff: Pick<CheckpointDiff, "from" | "to" | "files">;
  readonly turns: readonly SessionTurn[];
}): ReactNode {
  const may = useMay();
  const asked = useMemo(() => askedEdits(turns), [turns]);
  if (diff.files !== null) return <ChangedFiles files={diff.files} />;
  return (
    <div>
      <h3>Files</h3>
      <p className="small soft">
        {may.files ? whyUnknown(diff) : MAY_NOT.files}
        {asked.length > 0 && " Tool calls in the added turns asked to change:"}
      </p>
      <ul className="checkpoints-turns small">
        {asked.map((file) => (
          <Asked key={file.path} file={file} />
        ))}
      </ul>
    </div>
  );
}

function whyUnknown({ from, to }: Pick<CheckpointDiff, "from" | "to">): string {
  const holding = [from, to].filter(({ sandboxSnapshot }) => sandboxSnapshot !== undefined).length;
  if (holding === 0) return "Neither checkpoint holds files.";
  return holding === 1 ? "Only one checkpoint holds files." : "Their files cannot be compared here.";
}

function Asked({ file: { path, edits } }: { readonly file: AskedFile }): ReactNode {
  const title = (
    <>
      <code>{visibleText(path)}</code>{" "}
      <span className="soft">{edits.length === 1 ? "1 change" : `${edits.length} changes`}</span>
    </>
  );
  return (
    <li>
      <Fold title={title}>
        {edits.map((edit, index) => (
          <DiffView key={index} edit={edit} />
        ))}
      </Fold>
    </li>
  );
}
