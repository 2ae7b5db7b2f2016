import type { ReactNode } from "react";
import type { Content } from "../../../../src/session/message.ts";
import { RowForm } from "./row-form.tsx";
import { textOf, withText } from "../content/content-text.ts";
import { useTalkActions } from "../talk-actions.ts";

/** The open form of a row. */
export type OpenForm = "edit" | "label" | "fork" | null;

/** The form that an action of a row has opened. */
export function RowForms({
  form,
  labelId,
  endId,
  label,
  turn = null,
  onClose,
}: {
  readonly form: OpenForm;
  /** The entry that has the label, or gets it. */
  readonly labelId: string;
  readonly endId: string;
  readonly label: string | undefined;
  /** The user turn, if the row is one. */
  readonly turn?: { readonly parentId: string | null; readonly content: Content } | null;
  readonly onClose: () => void;
}): ReactNode {
  const actions = useTalkActions();
  if (form === null || actions === null) return null;
  if (form === "edit") {
    if (turn === null) return null;
    const text = textOf(turn.content);
    return (
      <RowForm
        title="New message"
        submit="Send on a new branch"
        initial={text}
        lines={Math.max(3, text.split("\n").length + 1)}
        onSubmit={(said) => actions.replaceTurn(turn.parentId, withText(turn.content, said))}
        onClose={onClose}
      />
    );
  }
  if (form === "label") {
    return (
      <RowForm
        title="Label of this turn (empty to remove)"
        submit="Set label"
        initial={label ?? ""}
        mayBeEmpty
        onSubmit={(said) => actions.label(labelId, said === "" ? null : said)}
        onClose={onClose}
      />
    );
  }
  return (
    <RowForm
      title="Name of the new session"
      submit="Fork from here"
      onSubmit={(said) => actions.fork(endId, said)}
      onClose={onClose}
    />
  );
}
