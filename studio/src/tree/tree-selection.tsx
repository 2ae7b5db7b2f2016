import { type ReactNode, type RefObject, useState } from "react";
import type { SessionView, TreeNodeView, TreeView } from "skein/client";
import { visibleText } from "../markdown/visible-text.ts";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { goTo } from "../shell/route.ts";
import { EntryDetails } from "./entry-details.tsx";
import { captionOf, KIND_NAMES, kindOf } from "./node-kind.ts";
import { NodeGlyph } from "./node-glyph.tsx";
import { BranchForm, ForkForm, LabelForm, PruneForm } from "./selection-forms.tsx";
import "./tree-selection.css";

/** The form that is open below the buttons. */
export type SelectionPart = "details" | "branch" | "label" | "prune" | "fork" | null;

interface SelectionProps {
  readonly session: SessionView;
  readonly tree: TreeView;
  readonly node: TreeNodeView;
  readonly part: SelectionPart;
  readonly onPart: (part: SelectionPart) => void;
  readonly onChanged: () => void;
  readonly onShowTurn: () => void;
  readonly onClose: () => void;
  /** Gets the focus when the selection is opened with a key. */
  readonly focusRef: RefObject<HTMLElement | null>;
}

/** The selected node and its actions. */
export function TreeSelection(props: SelectionProps): ReactNode {
  const { session, tree, node, part, onPart, onChanged, onShowTurn, onClose, focusRef } = props;
  const client = useClient();
  const id = session.header.id;
  const move = useAction(async () => {
    await client.sessions.moveLeaf(id, { entryId: node.id });
    onChanged();
  });
  const [notice, setNotice] = useState<string | null>(null);
  const isLeaf = node.id === tree.leafId;
  const isActive = tree.activePath.includes(node.id);
  const done = (said: string): void => {
    setNotice(said);
    onPart(null);
    onChanged();
  };
  const kind = kindOf(node);
  const form = { sessionId: id, tree, node, onDone: done, onCancel: () => onPart(null) };
  const opener = (name: Exclude<SelectionPart, null>, text: string, disabled = false): ReactNode => (
    <button
      type="button"
      className="button small"
      aria-expanded={part === name}
      disabled={disabled}
      onClick={() => onPart(part === name ? null : name)}
    >
      {text}
    </button>
  );
  return (
    <section
      ref={focusRef}
      tabIndex={-1}
      className="tree-selection"
      aria-label="Selected entry"
      onKeyDown={(event) => event.key === "Escape" && onClose()}
    >
      <header className="tree-selection-head">
        <NodeGlyph kind={kind} />
        <strong>{KIND_NAMES[kind]}</strong>
        <bdi className="tree-selection-caption">{visibleText(captionOf(node))}</bdi>
        <button type="button" className="button button-plain small" aria-label="Close the selection" onClick={onClose}>
          ✕
        </button>
      </header>
      <div role="toolbar" aria-label="Actions on the entry" className="tree-actions">
        <button
          type="button"
          className="button small"
          disabled={isLeaf || move.busy}
          title={isLeaf ? "The session is here" : "Continue the session after this entry"}
          onClick={() => void move.run()}
        >
          Move here
        </button>
        <button
          type="button"
          className="button small"
          onClick={() => {
            onShowTurn();
            goTo({ page: "session", id, view: "talk", options: { entry: node.id } });
          }}
        >
          Show in transcript
        </button>
        {opener("details", "Details")}
        {opener("branch", "Branch here")}
        {opener("label", node.label === null ? "Label" : "Change label")}
        {opener("fork", "Fork from here")}
        {opener("prune", "Prune", isActive)}
      </div>
      <div aria-live="polite">
        {move.error !== null && <p className="tree-problem small">{move.error.message}</p>}
        {notice !== null && part === null && <p className="soft small">{notice}</p>}
      </div>
      {part === "details" && <EntryDetails sessionId={id} node={node} />}
      {part === "branch" && <BranchForm {...form} onShowTurn={onShowTurn} />}
      {part === "label" && <LabelForm {...form} />}
      {part === "fork" && <ForkForm {...form} />}
      {part === "prune" && <PruneForm {...form} />}
    </section>
  );
}
