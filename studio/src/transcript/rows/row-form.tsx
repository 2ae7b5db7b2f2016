import { type FormEvent, type ReactNode, useEffect, useRef, useState } from "react";
import { useAction } from "../../request/use-action.ts";
import { useReturnFocus } from "../../shell/use-return-focus.ts";
import "./row-form.css";

/** A form with a text field in a row. */
export function RowForm({
  title,
  submit,
  initial = "",
  lines = 1,
  mayBeEmpty = false,
  onSubmit,
  onClose,
}: {
  /** The label of the field. */
  readonly title: string;
  /** The label of the button. */
  readonly submit: string;
  readonly initial?: string;
  readonly lines?: number;
  readonly mayBeEmpty?: boolean;
  readonly onSubmit: (text: string) => Promise<void>;
  readonly onClose: () => void;
}): ReactNode {
  const [text, setText] = useState(initial);
  const field = useRef<HTMLInputElement & HTMLTextAreaElement>(null);
  const action = useAction(onSubmit);
  useReturnFocus();
  useEffect(() => field.current?.focus(), []);
  const send = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (await action.run(lines > 1 ? text : text.trim())) onClose();
  };
  const Field = lines > 1 ? "textarea" : "input";
  return (
    <form
      className={lines > 1 ? "transcript-form transcript-form-tall" : "transcript-form"}
      onSubmit={(event) => void send(event)}
      onKeyDown={(event) => event.key === "Escape" && onClose()}
    >
      <Field
        ref={field}
        className="field"
        aria-label={title}
        placeholder={title}
        value={text}
        dir="auto"
        {...(lines > 1 ? { rows: Math.min(lines, 12) } : {})}
        onChange={(event) => setText(event.target.value)}
      />
      <span className="transcript-form-buttons">
        <button
          type="submit"
          className="button button-primary"
          disabled={action.busy || (!mayBeEmpty && text.trim() === "")}
        >
          {submit}
        </button>
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
      </span>
      {action.error !== null && (
        <p role="alert" className="transcript-form-problem">
          {action.error.message}
        </p>
      )}
    </form>
  );
}
