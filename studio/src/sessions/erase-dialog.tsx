import { type ReactNode, useCallback, useEffect, useId, useRef, useState } from "react";
import type { UsersClient } from "skein/client";
import { useAction } from "../request/use-action.ts";
import { useClient } from "../request/use-client.ts";
import { useReturnFocus } from "../shell/use-return-focus.ts";
import { announceChange, withdrawUndo } from "./session-signals.ts";
import "./session-actions.css";

type EraseReport = Awaited<ReturnType<UsersClient["erase"]>>;

/** Shows what would be erased of a user, asks for confirmation, erases it, and shows the result. */
export function EraseDialog({ userId, onClose }: { readonly userId: string; readonly onClose: () => void }): ReactNode {
  const client = useClient();
  const dialog = useRef<HTMLDialogElement>(null);
  const [forks, setForks] = useState<"keep" | "erase">("keep");
  const [planned, setPlanned] = useState<EraseReport | null>(null);
  const [done, setDone] = useState<EraseReport | null>(null);
  const id = useId();
  useReturnFocus();
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  const look = useAction(
    useCallback(
      async () => setPlanned(await client.users.erase(userId, { dryRun: true, forks })),
      [client, userId, forks],
    ),
  );
  const { run: lookAgain } = look;
  useEffect(() => void lookAgain(), [lookAgain]);
  const erase = useAction(
    useCallback(async () => {
      setDone(await client.users.erase(userId, { forks }));
      withdrawUndo();
      announceChange();
    }, [client, userId, forks]),
  );
  const error = look.error ?? erase.error;
  return (
    <dialog ref={dialog} className="sessions-dialog" aria-labelledby={id} onCancel={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void erase.run();
        }}
      >
        <h2 id={id} className="sessions-heading">
          {done === null ? "Delete everything of " : "Deleted everything of "}
          <bdi>{userId}</bdi>
          {done === null && "?"}
        </h2>
        {done === null && <p>This cannot be undone: nothing can be restored.</p>}
        {error !== null && <p role="alert">{error.message}</p>}
        {(done ?? planned) ? (
          <Report report={(done ?? planned) as EraseReport} done={done !== null} />
        ) : (
          <p>Looking…</p>
        )}
        {done === null && (
          <label>
            <input
              type="checkbox"
              checked={forks === "erase"}
              disabled={erase.busy}
              onChange={(event) => setForks(event.target.checked ? "erase" : "keep")}
            />{" "}
            Also erase their entries in forks of other users
          </label>
        )}
        <div className="sessions-line sessions-end">
          <button type="button" className="button" onClick={onClose}>
            {done === null ? "Cancel" : "Done"}
          </button>
          {done === null && (
            <button type="submit" className="button button-primary" disabled={erase.busy || planned === null}>
              {erase.busy ? "Deleting…" : "Delete everything"}
            </button>
          )}
        </div>
      </form>
    </dialog>
  );
}

/** Shows the data that was or would be erased, and the data that is kept. */
function Report({ report, done }: { readonly report: EraseReport; readonly done: boolean }): ReactNode {
  const { sessions, entries, checkpoints, snapshots, keptByForks, notCovered } = report;
  return (
    <ul aria-label={done ? "What was deleted" : "What would be deleted"}>
      <li>
        {done ? "Deleted" : "To delete"}: sessions {sessions}, entries {entries}, checkpoints {checkpoints}, snapshots{" "}
        {snapshots}.
      </li>
      {keptByForks.map(({ sessionId, forkId, userId }) => (
        <li key={`${sessionId} ${forkId}`}>
          Entries are kept in <bdi>{forkId}</bdi>, a fork of <bdi>{userId ?? "no user"}</bdi>.
        </li>
      ))}
      {notCovered.map(({ sessionId, reason, count }) => (
        <li key={`${sessionId} ${reason}`}>
          {reason === "snapshot" ? `${count} snapshots of ` : `${count} entries quoted by others are kept in `}
          <bdi>{sessionId}</bdi>
          {reason === "snapshot" ? " cannot be removed from here." : "."}
        </li>
      ))}
    </ul>
  );
}
