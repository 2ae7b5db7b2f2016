import { type ReactNode, useState } from "react";
import type { Checkpoint } from "../../../src/session/store.ts";
import { useAction } from "../request/use-action.ts";
import { MAY_NOT, useMay } from "../request/use-me.ts";
import { useClient } from "../request/use-client.ts";

/** The actions on a checkpoint that need a confirmation. */
export type CheckpointAct = "restore" | "delete";

interface QuestionProps {
  readonly what: CheckpointAct;
  readonly checkpoint: Checkpoint;
  readonly hasPlace: boolean;
  /** Called after the action, with the checkpoint that saved the files from before, if there is one. */
  readonly onDone: (kept: Checkpoint | null) => void;
  readonly onCancel: () => void;
}

/** Asks for confirmation to restore or delete a checkpoint, explains the effect, and does it. */
export function CheckpointQuestion({ what, checkpoint, hasPlace, onDone, onCancel }: QuestionProps): ReactNode {
  const client = useClient();
  const may = useMay();
  const [files, setFiles] = useState(false);
  const act = useAction(async () => {
    if (what === "restore") return onDone((await client.checkpoints.restore(checkpoint.id, { files })).kept);
    await client.checkpoints.delete(checkpoint.id);
    onDone(null);
  });
  const holdsFiles = checkpoint.sandboxSnapshot !== undefined;
  const canRestoreFiles = holdsFiles && hasPlace && may.files;
  const refused = what === "delete" && holdsFiles && !may.files;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields.
    <div className="checkpoints-question" role="group" aria-label={`Confirm: ${what} the checkpoint`}>
      <p className="small">
        {what === "restore"
          ? "The session goes back to this point, and the next message continues from here. Nothing is deleted: later entries stay as a branch."
          : `The checkpoint is removed${holdsFiles ? ", with its files" : ""}. The entries of the session are kept.`}
      </p>
      {what === "restore" && canRestoreFiles && <FilesChoice files={files} onChange={setFiles} />}
      {what === "restore" && !canRestoreFiles && (
        <p className="small">Files are not changed: {whyFilesStay(holdsFiles, hasPlace)}</p>
      )}
      {refused && <p className="small">{MAY_NOT.files}</p>}
      {act.error !== null && (
        <p role="alert" className="checkpoints-problem small">
          {act.error.message}
        </p>
      )}
      <div className="checkpoints-actions">
        <button
          type="button"
          className={`button small ${what === "restore" ? "button-primary" : "button-danger"}`}
          // biome-ignore lint/a11y/noAutofocus: the question was just asked.
          autoFocus
          aria-disabled={act.busy || refused}
          onClick={() => !act.busy && !refused && void act.run()}
        >
          {what === "restore" ? "Restore it" : "Delete it"}
        </button>
        <button type="button" className="button small" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </div>
  );
}

function whyFilesStay(holdsFiles: boolean, hasPlace: boolean): string {
  if (!holdsFiles) return "the checkpoint holds none.";
  return hasPlace ? MAY_NOT.files : "the session has no directory to restore them to.";
}

function FilesChoice({
  files,
  onChange,
}: {
  readonly files: boolean;
  readonly onChange: (files: boolean) => void;
}): ReactNode {
  return (
    <label className="checkpoints-with-files small">
      <input type="checkbox" checked={files} onChange={(event) => onChange(event.target.checked)} />
      <span>
        Also restore its files: the directory where the session's tools work then holds exactly these files. The current
        files are saved in another checkpoint first.
      </span>
    </label>
  );
}
