import { type ReactNode, useId, useRef, useState } from "react";
import type { ListedSession } from "skein/client";
import { useDismiss } from "../sessions/use-dismiss.ts";
import { ShareForm } from "./share-form.tsx";
import "./share.css";

/** Exports a session or a branch as a file. */
export function ShareButton({
  session,
  leafId,
}: {
  readonly session: ListedSession;
  /** The end of the branch that can be exported alone. */
  readonly leafId?: string;
}): ReactNode {
  const [open, setOpen] = useState(false);
  const id = useId();
  const whole = useRef<HTMLDivElement>(null);
  const close = useDismiss(whole, open, () => setOpen(false));
  return (
    <div ref={whole} className="share">
      <button
        type="button"
        className="button"
        aria-haspopup="dialog"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen((before) => !before)}
      >
        Share <span aria-hidden="true">▾</span>
      </button>
      {open && (
        <div id={id} role="dialog" aria-label="Share this session as a file" className="share-panel">
          <ShareForm session={session} leafId={leafId ?? null} onDone={close} />
        </div>
      )}
    </div>
  );
}
