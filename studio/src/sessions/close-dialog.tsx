import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import type { ListedSession } from "skein/client";
import { useReturnFocus } from "../shell/use-return-focus.ts";
import { titleOf } from "./session-status.ts";

/** Asks for confirmation to close a session, which cannot be undone. */
export function CloseDialog({
  session,
  onClose,
  onConfirm,
}: {
  readonly session: ListedSession;
  readonly onClose: () => void;
  readonly onConfirm: (reason: string) => void;
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [reason, setReason] = useState("");
  const id = useId();
  useReturnFocus();
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog ref={dialog} className="sessions-dialog" aria-labelledby={id} onCancel={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onClose();
          onConfirm(reason.trim());
        }}
      >
        <h2 id={id} className="sessions-heading">
          Close this session?
        </h2>
        <p>
          <bdi>{titleOf(session)}</bdi> then accepts no more turns. This cannot be undone. Its messages are kept, and it
          can still be read and forked.
        </p>
        <label>
          Reason (optional)
          <input className="field" value={reason} maxLength={500} onChange={(event) => setReason(event.target.value)} />
        </label>
        <div className="sessions-line sessions-end">
          <button type="button" className="button" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="button button-primary">
            Close session
          </button>
        </div>
      </form>
    </dialog>
  );
}
