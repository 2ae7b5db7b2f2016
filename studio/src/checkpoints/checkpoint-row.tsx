import { type ReactNode, useId, useState } from "react";
import type { TimelineCheckpoint } from "skein/client";
import type { Checkpoint } from "../../../src/session/store.ts";
import { visibleText } from "../markdown/visible-text.ts";
import { addressOf } from "../shell/route.ts";
import { NodeGlyph } from "../tree/node-glyph.tsx";
import { captionOf, kindOf } from "../tree/node-kind.ts";
import { noteOf, positionText } from "./checkpoint-position.ts";
import { type CheckpointAct, CheckpointQuestion } from "./checkpoint-question.tsx";
import "./checkpoint-row.css";

interface RowProps {
  readonly sessionId: string;
  readonly checkpoint: TimelineCheckpoint;
  readonly chosen: boolean;
  readonly onChoose: (id: string, chosen: boolean) => void;
  /** Whether the session has a directory where its tools work. */
  readonly hasPlace: boolean;
  /** Called with the checkpoint that saved the files from before, if files were restored. */
  readonly onChanged: (kept: Checkpoint | null) => void;
}

/** One checkpoint with its time, position and actions. */
export function CheckpointRow({ sessionId, checkpoint, chosen, hasPlace, onChoose, onChanged }: RowProps): ReactNode {
  const [asking, setAsking] = useState<CheckpointAct | null>(null);
  const titleId = useId();
  const { id, createdAt, version, metadata, sandboxSnapshot, node } = checkpoint;
  const note = noteOf(checkpoint);
  const more = Object.entries(metadata).filter(
    ([name]) => !(name === "note" && note !== null) && name !== "beforeRestoreOf",
  );
  const when = new Date(createdAt).toLocaleString();
  return (
    <li className={`checkpoints-row${chosen ? " checkpoints-row-chosen" : ""}`} aria-labelledby={titleId}>
      <div className="checkpoints-head">
        <strong id={titleId} className="checkpoints-note" dir="auto">
          {note === null ? `Checkpoint at position ${version}` : visibleText(note)}
        </strong>
        {checkpoint.stepsBack === 0 && <span className="tag checkpoints-here">here</span>}
        {sandboxSnapshot !== undefined && <span className="tag">with files</span>}
      </div>
      <p className="small soft">
        <time dateTime={createdAt}>{when}</time> · position {version.toLocaleString("en")} · {positionText(checkpoint)}
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
        <CheckpointQuestion
          key={asking}
          what={asking}
          checkpoint={checkpoint}
          hasPlace={hasPlace}
          onDone={(kept) => {
            setAsking(null);
            onChanged(kept);
          }}
          onCancel={() => setAsking(null)}
        />
      )}
    </li>
  );
}
