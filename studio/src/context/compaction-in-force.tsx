import { type ReactNode, useState } from "react";
import type { ContextView } from "skein/client";
import { LongText } from "../markdown/long-text.tsx";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { DroppedEntries } from "./dropped-entries.tsx";

/** The compaction at the start of a context: its summary, the entries that it replaced, and how to undo it. */
export function CompactionInForce({
  sessionId,
  compaction,
  onChanged,
}: {
  readonly sessionId: string;
  readonly compaction: NonNullable<ContextView["compaction"]>;
  readonly onChanged: () => void;
}): ReactNode {
  const client = useClient();
  const [open, setOpen] = useState(false);
  const undo = useAction(async () => {
    await client.sessions.undoCompaction(sessionId, { entryId: compaction.entryId });
    onChanged();
  });
  const count = compaction.droppedEntries;
  return (
    <section className="context-card" aria-label="Active compaction">
      <h3>Active compaction</h3>
      <p className="small">
        The context begins with a summary instead of{" "}
        <strong>
          {count.toLocaleString("en")} {count === 1 ? "entry" : "entries"}
        </strong>
        . The log still has them.
      </p>
      <details>
        <summary>Summary</summary>
        <LongText text={compaction.summary} />
      </details>
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Replaced entries</summary>
        {open && <DroppedEntries sessionId={sessionId} compactionId={compaction.entryId} />}
      </details>
      {undo.error !== null && (
        <p role="alert" className="context-problem small">
          {undo.error.message}
        </p>
      )}
      <div>
        <button type="button" className="button small" disabled={undo.busy} onClick={() => void undo.run()}>
          Undo the compaction
        </button>
      </div>
    </section>
  );
}
