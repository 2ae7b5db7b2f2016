import type { ReactNode } from "react";
import type { ContextView } from "skein/client";
import { visibleText } from "../markdown/visible-text.ts";
import { UndoEdit, Numbers } from "./edit-part.tsx";

/** The messages that edits leave out of a context, and how to bring them back. */
export function OmittedParts({
  sessionId,
  omitted,
  onChanged,
}: {
  readonly sessionId: string;
  readonly omitted: ContextView["omitted"];
  readonly onChanged: () => void;
}): ReactNode {
  if (omitted.length === 0) return null;
  return (
    <section className="context-card" aria-label="Left out">
      <h3>Left out</h3>
      <p className="small soft">The model does not see these messages. The log still has them.</p>
      <ul className="context-omitted small">
        {omitted.map(({ entryId, role, preview, edit }) => (
          <li key={edit.editId}>
            <span className={`context-dot context-${role}`} aria-hidden="true" /> {role}:{" "}
            <bdi className="soft">{visibleText(preview)}</bdi>
            {edit.reason !== undefined && <p className="soft">Why: {visibleText(edit.reason)}</p>}
            <Numbers sessionId={sessionId} entryId={edit.editId} what="Brought back" />
            <UndoEdit sessionId={sessionId} editId={edit.editId} onChanged={onChanged} />
            <span className="only-for-readers">{entryId}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
