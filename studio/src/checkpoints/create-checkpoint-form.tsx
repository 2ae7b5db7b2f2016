import { type FormEvent, type ReactNode, useState } from "react";
import { useAction } from "../request/use-action.ts";
import { MAY_NOT, useMay } from "../request/use-me.ts";
import { useClient } from "../request/use-client.ts";

interface FormProps {
  readonly sessionId: string;
  /** Whether the session has a directory where its tools work; null while that is unknown. */
  readonly hasPlace: boolean | null;
  readonly onCreated: () => void;
}

/** Creates a checkpoint at the current position, optionally with the files. */
export function CreateCheckpointForm({ sessionId, hasPlace, onCreated }: FormProps): ReactNode {
  const client = useClient();
  const may = useMay();
  const [note, setNote] = useState("");
  const [files, setFiles] = useState(false);
  const create = useAction(async () => {
    const text = note.trim();
    await client.checkpoints.create(sessionId, { files, ...(text === "" ? {} : { metadata: { note: text } }) });
    setNote("");
    onCreated();
  });
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (!create.busy) void create.run();
  };
  return (
    <form className="checkpoints-create" aria-label="Create a checkpoint" onSubmit={send}>
      <label className="checkpoints-create-note">
        <span className="small">Note for a checkpoint (optional)</span>
        <input
          className="field"
          placeholder="before the risky part"
          value={note}
          onChange={(event) => setNote(event.target.value)}
        />
      </label>
      <button type="submit" className="button button-primary" aria-disabled={create.busy}>
        Create a checkpoint
      </button>
      {hasPlace === false || !may.files ? (
        <p className="checkpoints-with-files small soft">
          It holds no files:{" "}
          {may.files ? "neither the session nor the server has a directory where tools work." : MAY_NOT.files}
        </p>
      ) : (
        <label className="checkpoints-with-files small">
          <input
            type="checkbox"
            checked={files}
            disabled={hasPlace === null}
            onChange={(event) => setFiles(event.target.checked)}
          />{" "}
          With the current files of the directory where its tools work
        </label>
      )}
      {create.error !== null && (
        <p role="alert" className="checkpoints-problem small">
          {create.error.message}
        </p>
      )}
    </form>
  );
}
