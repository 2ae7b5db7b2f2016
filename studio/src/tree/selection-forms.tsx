import { type FormEvent, type ReactNode, useState } from "react";
import type { TreeNodeView, TreeView } from "skein/client";
import { type Action, useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { goTo } from "../shell/route.ts";
import { useReturnFocus } from "../shell/use-return-focus.ts";
import { countBelow } from "./tree-elements.ts";

/** The props of every form about a node. */
export interface NodeFormProps {
  readonly sessionId: string;
  readonly tree: TreeView;
  readonly node: TreeNodeView;
  /** Called after success, with a sentence about it. */
  readonly onDone: (said: string) => void;
  readonly onCancel: () => void;
}

/** Starts another branch at a node, optionally with a summary of the current one. */
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
    onDone("The next message starts a branch here.");
    onShowTurn();
    goTo({ page: "session", id: sessionId, view: "talk", options: { entry: leafId ?? node.id } });
  });
  return (
    <NodeForm action={branch} submit="Start a branch" onCancel={onCancel}>
      <p className="small soft">
        The next message follows this entry. The entries that follow it now stay as a branch.
      </p>
      <label className="small">
        What the branch that is left did (optional; the model is told)
        <textarea className="field" rows={2} value={summary} onChange={(event) => setSummary(event.target.value)} />
      </label>
    </NodeForm>
  );
}

/** Sets or removes the label of a node. */
export function LabelForm({ sessionId, node, onDone, onCancel }: NodeFormProps): ReactNode {
  const client = useClient();
  const [label, setLabel] = useState(node.label ?? "");
  const put = useAction(async () => {
    const text = label.trim();
    await client.sessions.label(sessionId, node.id, text === "" ? null : text);
    onDone(text === "" ? "The label was removed." : "The label was saved.");
  });
  return (
    <NodeForm action={put} submit="Save the label" onCancel={onCancel}>
      <label className="small">
        Label (empty to remove)
        <input
          className="field"
          // biome-ignore lint/a11y/noAutofocus: the user has just opened it.
          autoFocus
          value={label}
          onChange={(event) => setLabel(event.target.value)}
        />
      </label>
    </NodeForm>
  );
}

/** Forks the session at a node. */
export function ForkForm({ sessionId, node, onDone, onCancel }: NodeFormProps): ReactNode {
  const client = useClient();
  const [name, setName] = useState("");
  const fork = useAction(async () => {
    const made = await client.sessions.fork(sessionId, { branchName: name.trim(), at: node.id });
    onDone("The fork was created.");
    goTo({ page: "session", id: made.header.id, view: "talk", options: {} });
  });
  return (
    <NodeForm action={fork} submit="Fork" disabled={name.trim() === ""} onCancel={onCancel}>
      <p className="small soft">Creates a new session that begins with all entries up to this one.</p>
      <label className="small">
        Name of the fork
        <input
          className="field"
          // biome-ignore lint/a11y/noAutofocus: the user has just opened it.
          autoFocus
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </label>
    </NodeForm>
  );
}

/** Hides a side branch after a confirmation. */
export function PruneForm({ sessionId, tree, node, onDone, onCancel }: NodeFormProps): ReactNode {
  const client = useClient();
  const prune = useAction(async () => {
    await client.sessions.prune(sessionId, node.id);
    onDone("The branch was hidden.");
  });
  const count = countBelow(tree, node.id);
  return (
    <NodeForm action={prune} submit={`Hide ${count === 1 ? "1 entry" : `${count} entries`}`} danger onCancel={onCancel}>
      <p className="small">
        This permanently hides the entry and all entries after it. The log keeps them, but no view shows them any more.
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
