import type { ReactNode } from "react";
import type { Content } from "../../../../src/session/message.ts";
import { CopyButton } from "../../markdown/copy-button.tsx";
import { useAction } from "../../request/use-action.ts";
import { useMay } from "../../request/use-me.ts";
import { addressOf } from "../../shell/route.ts";
import type { OpenForm } from "./row-forms.tsx";
import { useTalkActions } from "../talk-actions.ts";

/** The actions on a turn. Those that change the session are hidden while nothing may change it. */
export function RowActions({
  id,
  endId,
  text,
  retry = null,
  editable = false,
  onForm,
}: {
  readonly id: string;
  readonly endId: string;
  /** Returns the text of the turn, to copy. */
  readonly text: () => string;
  /** The message to send again, and its parent, to get another answer. */
  readonly retry?: { readonly parentId: string | null; readonly input: Content } | null;
  readonly editable?: boolean;
  readonly onForm: (form: OpenForm) => void;
}): ReactNode {
  const actions = useTalkActions();
  const may = useMay();
  const branch = useAction(async () => actions?.branch(endId));
  const again = useAction(async () => retry !== null && actions?.replaceTurn(retry.parentId, retry.input));
  if (actions === null) return null;
  const link = (): string =>
    new URL(
      addressOf({ page: "session", id: actions.sessionId, view: "talk", options: { entry: id } }),
      window.location.href,
    ).href;
  const error = branch.error ?? again.error;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for a form.
    <div className="transcript-actions" role="group" aria-label="Actions on this turn">
      <CopyButton label="Copy text" text={text} />
      <CopyButton label="Copy link" text={link} />
      {editable && may.run && <FormButton form="edit" name="Edit and try again" onForm={onForm} changes />}
      {retry !== null && may.run && (
        <button
          type="button"
          className="button button-plain small transcript-change"
          disabled={again.busy}
          onClick={() => void again.run()}
        >
          Try again
        </button>
      )}
      <button
        type="button"
        className="button button-plain small transcript-change transcript-branch"
        disabled={branch.busy}
        onClick={() => void branch.run()}
      >
        Branch here
      </button>
      <FormButton form="label" name="Label" onForm={onForm} />
      <FormButton form="fork" name="Fork" onForm={onForm} />
      {error !== null && <span role="alert">{error.message}</span>}
    </div>
  );
}

function FormButton({
  form,
  name,
  onForm,
  changes = false,
}: {
  readonly form: OpenForm;
  readonly name: string;
  readonly onForm: (form: OpenForm) => void;
  readonly changes?: boolean;
}): ReactNode {
  const className = `button button-plain small${changes ? " transcript-change" : ""}`;
  return (
    <button type="button" className={className} onClick={() => onForm(form)}>
      {name}
    </button>
  );
}
