import { type ReactNode, useEffect, useState } from "react";
import type { ListedSession } from "skein/client";
import { ShareButton } from "../share/share-button.tsx";
import { BackLink } from "../shell/back-link.tsx";
import { CloseDialog } from "./close-dialog.tsx";
import { Menu, type MenuItem } from "./menu.tsx";
import { RenameForm } from "./rename-form.tsx";
import { markOf } from "./session-status.ts";
import { SessionMark } from "./session-mark.tsx";
import { announceChange } from "./session-signals.ts";
import { type SessionLife, useSessionLife } from "./use-session-life.ts";
import "./sessions.css";
import "./session-actions.css";

/** The actions on a session as a whole. */
export function SessionActions({
  session,
  onChange,
}: {
  readonly session: ListedSession;
  readonly onChange: () => void;
}): ReactNode {
  const [open, setOpen] = useState<"rename" | "close" | null>(null);
  const life = useSessionLife(session, onChange);
  const { version, running } = session;
  // Notifies the list of changes in this session.
  useEffect(announceChange, [version, running?.runId]);
  return (
    <>
      <BackLink />
      {open === "rename" && <RenameForm session={session} onChange={onChange} onClose={() => setOpen(null)} />}
      <div className="sessions-actions">
        <SessionMark mark={markOf(session)} />
        <button
          type="button"
          className="button"
          hidden={open === "rename"}
          disabled={session.status !== "active"}
          title={session.status === "active" ? undefined : "Only an active session can be renamed."}
          onClick={() => setOpen("rename")}
        >
          Rename
        </button>
        <ShareButton session={session} {...(session.leafId === null ? {} : { leafId: session.leafId })} />
        <Menu name="More" label="More actions" items={itemsOf(session, life, () => setOpen("close"))} />
      </div>
      {open === "close" && (
        <CloseDialog session={session} onClose={() => setOpen(null)} onConfirm={(reason) => life.close(reason)} />
      )}
      {life.error !== null && (
        <p role="alert" className="sessions-problem sessions-whole-line">
          {life.error.message}{" "}
          <button type="button" className="button button-plain" onClick={life.clear}>
            Dismiss
          </button>
        </p>
      )}
    </>
  );
}

function itemsOf({ status }: ListedSession, life: SessionLife, askToClose: () => void): readonly MenuItem[] {
  const { busy } = life;
  const ended = status === "closed" || status === "expired";
  const pause: MenuItem =
    status === "suspended"
      ? { name: "Resume", disabled: busy, act: life.resume }
      : { name: "Suspend", disabled: busy || ended, act: life.suspend };
  return [
    pause,
    { name: "Close …", disabled: busy || ended, act: askToClose },
    { name: "Delete", disabled: busy, danger: true, act: life.remove },
  ];
}
