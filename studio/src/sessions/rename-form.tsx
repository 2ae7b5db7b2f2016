import { type FormEvent, type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import type { ListedSession } from "skein/client";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { useReturnFocus } from "../shell/use-return-focus.ts";
import { announceChange } from "./session-signals.ts";

const NAME_CHARACTERS_MAX = 1000;

/** A field for the session's name in place of its title; an empty name removes it. */
export function RenameForm({
  session,
  onChange,
  onClose,
}: {
  readonly session: ListedSession;
  readonly onChange: () => void;
  readonly onClose: () => void;
}): ReactNode {
  const client = useClient();
  const { id } = session.header;
  const [name, setName] = useState(session.name ?? "");
  const field = useRef<HTMLInputElement>(null);
  useReturnFocus();
  useEffect(() => field.current?.select(), []);
  const rename = useAction(useCallback((next: string) => client.sessions.update(id, { name: next }), [client, id]));
  const save = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (rename.busy || (name.trim() !== (session.name ?? "") && !(await rename.run(name.trim())))) return;
    announceChange();
    onChange();
    onClose();
  };
  return (
    <form className="sessions-rename" onSubmit={(event) => void save(event)}>
      <input
        ref={field}
        className="field"
        aria-label="Name of the session"
        placeholder={session.firstMessage?.slice(0, 80) ?? "New session"}
        maxLength={NAME_CHARACTERS_MAX}
        value={name}
        onChange={(event) => setName(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && onClose()}
      />
      <button type="submit" className="button button-primary" disabled={rename.busy}>
        Save
      </button>
      <button type="button" className="button" onClick={onClose}>
        Cancel
      </button>
      {rename.error !== null && (
        <p role="alert" className="sessions-problem">
          {rename.error.message}
        </p>
      )}
    </form>
  );
}
