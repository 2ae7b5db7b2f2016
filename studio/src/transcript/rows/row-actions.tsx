import type { ReactNode } from "react";
import type { Content } from "../../../../src/session/message.ts";
import { CopyButton } from "../../markdown/copy-button.tsx";
import { useAction } from "../../request/use-action.ts";
import { useMay } from "../../request/use-me.ts";
import { Icon } from "../../shell/icon.tsx";
import { addressOf } from "../../shell/route.ts";
import type { OpenForm } from "./row-forms.tsx";
import { useTalkActions } from "../talk-actions.ts";

/** The actions on a turn. The actions that change the session are hidden while it accepts no changes. */
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
      {editable && may.run && <FormButton form="edit" name="Edit and try again" onForm={onForm} changes named />}
      {retry !== null && may.run && (
        <button
          type="button"
          className="button button-plain small transcript-change"
          disabled={again.busy}
          onClick={() => void again.run()}
        >
          <Icon name="retry" />
          Try again
        </button>
      )}
      <button
        type="button"
        className="button button-plain small button-icon transcript-change transcript-branch"
        aria-label="Branch here"
        title="Branch here: the next message follows this turn"
        disabled={branch.busy}
        onClick={() => void branch.run()}
      >
        <Icon name="branch" />
      </button>
      <CopyButton label="Copy text" text={text} icon="copy" />
      <CopyButton label="Copy link" text={link} icon="link" />
      <FormButton form="label" name="Label" onForm={onForm} />
      <FormButton form="fork" name="Fork" onForm={onForm} />
      {error !== null && <span role="alert">{error.message}</span>}
    </div>
  );
}

const FORM_ICONS = { edit: "edit", label: "label", fork: "fork" } as const;

function FormButton({
  form,
  name,
  onForm,
  changes = false,
  named = false,
}: {
  readonly form: Exclude<OpenForm, null>;
  readonly name: string;
  readonly onForm: (form: OpenForm) => void;
  readonly changes?: boolean;
  /** Whether the name is shown beside the icon. */
  readonly named?: boolean;
}): ReactNode {
  const className = `button button-plain small${named ? "" : " button-icon"}${changes ? " transcript-change" : ""}`;
  return (
    <button
      type="button"
      className={className}
      aria-label={named ? undefined : name}
      title={named ? undefined : name}
      onClick={() => onForm(form)}
    >
      <Icon name={FORM_ICONS[form]} />
      {named && name}
    </button>
  );
}
