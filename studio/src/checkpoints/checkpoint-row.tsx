import { type ReactNode, useId, useState } from "react";
import type { Checkpoint } from "../../../src/session/store.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { addressOf } from "../shell/place.ts";
import { NodeGlyph } from "../tree/node-glyph.tsx";
import { captionOf, kindOf } from "../tree/node-kind.ts";
import { type CheckpointPlace, noteOf, placeText } from "./checkpoint-place.ts";

interface RowProps {
  readonly sessionId: string;
  readonly checkpoint: Checkpoint;
  readonly place: CheckpointPlace;
  readonly chosen: boolean;
  readonly onChoose: (id: string, chosen: boolean) => void;
  readonly onChanged: () => void;
}

/** One checkpoint: when and where, and what can be done with it. */
export function CheckpointRow({ sessionId, checkpoint, place, chosen, onChoose, onChanged }: RowProps): ReactNode {
  const [asking, setAsking] = useState<"restore" | "delete" | null>(null);
  const titleId = useId();
  const { id, createdAt, version, metadata, sandboxSnapshot } = checkpoint;
  const note = noteOf(checkpoint);
  const more = Object.entries(metadata).filter(([name]) => name !== "note" || note === null);
  const { node } = place;
  const when = new Date(createdAt).toLocaleString();
  return (
    <li className={`checkpoints-row${chosen ? " checkpoints-row-chosen" : ""}`} aria-labelledby={titleId}>
      <div className="checkpoints-head">
        <strong id={titleId} className="checkpoints-note" dir="auto">
          {note === null ? `Checkpoint at position ${version}` : visibleText(note)}
        </strong>
        {place.where === "leaf" && <span className="tag checkpoints-here">here</span>}
        {sandboxSnapshot !== undefined && <span className="tag">with files</span>}
      </div>
      <p className="small soft">
        <time dateTime={createdAt}>{when}</time> · position {version.toLocaleString("en")} · {placeText(place)}
      </p>
      {node !== null && (
        <p className="checkpoints-node small">
          <NodeGlyph kind={kindOf(node)} />
          <a href={addressOf({ page: "session", id: sessionId, view: "talk", options: { entry: node.id } })}>
            <bdi>{visibleText(captionOf(node))}</bdi>
          </a>
        </p>
      )}
      {more.length > 0 && (
        <p className="checkpoints-more small soft">{visibleText(JSON.stringify(Object.fromEntries(more)))}</p>
      )}
      <div className="checkpoints-actions">
        <label className="checkpoints-choose small">
          <input type="checkbox" checked={chosen} onChange={(event) => onChoose(id, event.target.checked)} /> Compare
        </label>
        <button
          type="button"
          className="button small"
          aria-expanded={asking === "restore"}
          onClick={() => setAsking(asking === "restore" ? null : "restore")}
        >
          Restore
        </button>
        <button
          type="button"
          className="button small button-danger"
          aria-expanded={asking === "delete"}
          onClick={() => setAsking(asking === "delete" ? null : "delete")}
        >
          Delete
        </button>
      </div>
      {asking !== null && (
        <Question
          key={asking}
          what={asking}
          checkpoint={checkpoint}
          onDone={() => {
            setAsking(null);
            onChanged();
          }}
          onCancel={() => setAsking(null)}
        />
      )}
    </li>
  );
}

interface QuestionProps {
  readonly what: "restore" | "delete";
  readonly checkpoint: Checkpoint;
  readonly onDone: () => void;
  readonly onCancel: () => void;
}

function Question({ what, checkpoint, onDone, onCancel }: QuestionProps): ReactNode {
  const client = useClient();
  const act = useAction(async () => {
    if (what === "restore") await client.checkpoints.restore(checkpoint.id);
    else await client.checkpoints.delete(checkpoint.id);
    onDone();
  });
  const files = checkpoint.sandboxSnapshot !== undefined;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields.
    <div className="checkpoints-question" role="group" aria-label={`Confirm: ${what} the checkpoint`}>
      <p className="small">
        {what === "restore"
          ? "The session goes back to this point, and the next message continues from here. Nothing is erased: what came since stays as a branch."
          : `The checkpoint is removed${files ? ", with the files that it holds" : ""}. The entries of the session stay.`}
      </p>
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
          aria-disabled={act.busy}
          onClick={() => !act.busy && void act.run()}
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
