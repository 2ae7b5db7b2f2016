import type { ReactNode } from "react";
import type { Content } from "../../../../src/session/message.ts";
import { RowForm } from "./row-form.tsx";
import { textOf, withText } from "../content/said.ts";
import { useTalkActions } from "../talk-actions.ts";

/** The form that is open in a row. */
export type OpenForm = "edit" | "label" | "fork" | null;

/** The form that an action of a row opened. */
export function RowForms({
  form,
  id,
  endId,
  label,
  turn = null,
  onClose,
}: {
  readonly form: OpenForm;
  readonly id: string;
  readonly endId: string;
  readonly label: string | undefined;
  /** The user turn, where the row is one. */
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
        title="What to say instead"
        submit="Send on a new branch"
        initial={text}
        lines={Math.max(3, text.split("\n").length + 1)}
        onSubmit={(said) => actions.sayInstead(turn.parentId, withText(turn.content, said))}
        onClose={onClose}
      />
    );
  }
  if (form === "label") {
    return (
      <RowForm
        title="Label of this turn (empty: none)"
        submit="Set label"
        initial={label ?? ""}
        mayBeEmpty
        onSubmit={(said) => actions.label(id, said === "" ? null : said)}
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
