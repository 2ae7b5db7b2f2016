import { type FormEvent, type ReactNode, useState } from "react";
import type { TreeNodeView, TreeView } from "skein/client";
import { type Action, useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { goTo } from "../shell/route.ts";
import { useReturnFocus } from "../shell/use-return-focus.ts";
import { countBelow } from "./tree-elements.ts";

/** What every form about a node is given. */
export interface NodeFormProps {
  readonly sessionId: string;
  readonly tree: TreeView;
  readonly node: TreeNodeView;
  /** It worked; says what was done. */
  readonly onDone: (said: string) => void;
  readonly onCancel: () => void;
}

/** Begins another branch at a node, and may say there what the one that is left did. */
export function BranchForm({
  sessionId,
  node,
  onDone,
  onCancel,
  onShowTurn,
}: NodeFormProps & { readonly onShowTurn: () => void }): ReactNode {
  const client = useClient();
  const [summary, setSummary] = useState("");
  const branch = useAction(async () => {
    const said = summary.trim();
    const { leafId } = await client.sessions.moveLeaf(sessionId, {
      entryId: node.id,
      ...(said === "" ? {} : { summary: said }),
    });
    onDone("The next message begins a branch here.");
    onShowTurn();
    goTo({ page: "session", id: sessionId, view: "talk", options: { entry: leafId ?? node.id } });
  });
  return (
    <NodeForm action={branch} submit="Begin a branch" onCancel={onCancel}>
      <p className="small soft">The next message hangs on this entry. What follows it now stays as a branch.</p>
      <label className="small">
        What the branch that is left did (optional; the model is told)
        <textarea className="field" rows={2} value={summary} onChange={(event) => setSummary(event.target.value)} />
      </label>
    </NodeForm>
  );
}

/** Puts a label on a node, or takes it off. */
export function LabelForm({ sessionId, node, onDone, onCancel }: NodeFormProps): ReactNode {
  const client = useClient();
  const [label, setLabel] = useState(node.label ?? "");
  const put = useAction(async () => {
    const text = label.trim();
    await client.sessions.label(sessionId, node.id, text === "" ? null : text);
    onDone(text === "" ? "The label is off." : "The entry is labelled.");
  });
  return (
    <NodeForm action={put} submit="Save the label" onCancel={onCancel}>
      <label className="small">
        Label (leave it empty to take it off)
        <input
          className="field"
          // biome-ignore lint/a11y/noAutofocus: it was just asked for.
          autoFocus
          value={label}
          onChange={(event) => setLabel(event.target.value)}
        />
      </label>
    </NodeForm>
  );
}

/** Makes a session that begins with what this one says up to a node. */
export function ForkForm({ sessionId, node, onDone, onCancel }: NodeFormProps): ReactNode {
  const client = useClient();
  const [name, setName] = useState("");
  const fork = useAction(async () => {
    const made = await client.sessions.fork(sessionId, { branchName: name.trim(), at: node.id });
    onDone("The fork is made.");
    goTo({ page: "session", id: made.header.id, view: "talk", options: {} });
  });
  return (
    <NodeForm action={fork} submit="Fork" disabled={name.trim() === ""} onCancel={onCancel}>
      <p className="small soft">Makes a session of its own that begins with everything up to this entry.</p>
      <label className="small">
        Name of the fork
        <input
          className="field"
          // biome-ignore lint/a11y/noAutofocus: it was just asked for.
          autoFocus
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
    </NodeForm>
  );
}

/** Hides a side branch, once that is confirmed. */
export function PruneForm({ sessionId, tree, node, onDone, onCancel }: NodeFormProps): ReactNode {
  const client = useClient();
  const prune = useAction(async () => {
    await client.sessions.prune(sessionId, node.id);
    onDone("The branch is hidden.");
  });
  const count = countBelow(tree, node.id);
  return (
    <NodeForm action={prune} submit={`Hide ${count === 1 ? "1 entry" : `${count} entries`}`} danger onCancel={onCancel}>
      <p className="small">
        This hides the entry and all that follows it, for good. The log keeps it, but no view shows it any more.
      </p>
    </NodeForm>
  );
}

function NodeForm({
  action,
  submit,
  disabled = false,
  danger = false,
  onCancel,
  children,
}: {
  readonly action: Action<[]>;
  readonly submit: string;
  readonly disabled?: boolean;
  readonly danger?: boolean;
  readonly onCancel: () => void;
  readonly children: ReactNode;
}): ReactNode {
  useReturnFocus();
  const send = (event: FormEvent): void => {
    event.preventDefault();
    void action.run();
  };
  return (
    <form className="tree-form" onSubmit={send}>
      {children}
      {action.error !== null && (
        <p role="alert" className="tree-problem small">
          {action.error.message}
        </p>
      )}
      <div className="tree-actions">
        <button
          type="submit"
          className={`button small ${danger ? "button-danger" : disabled ? "" : "button-primary"}`}
          disabled={disabled || action.busy}
        >
          {submit}
        </button>
        <button type="button" className="button small" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}
