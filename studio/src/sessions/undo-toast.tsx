import { type ReactNode, useCallback, useEffect, useState } from "react";
import { createPortal } from "react-dom";
import { useAction } from "../request/use-action.ts";
import { announceChange, onOffer, type Undoable } from "./session-signals.ts";
import "./undo-toast.css";

/** How long the offer is shown, unless the pointer or the focus is on it. */
const OFFER_MS = 15_000;

/** Shows what was done, with a button to undo it, on every page. */
export function UndoToast(): ReactNode {
  const [offer, setOffer] = useState<Undoable | null>(null);
  const [held, setHeld] = useState(false);
  const [said, setSaid] = useState("");
  const undo = useAction(useCallback(async (undoable: Undoable) => undoable.undo(), []));
  const { clear } = undo;
  useEffect(
    () =>
      onOffer((next) => {
        clear();
        setSaid("");
        setHeld(false);
        setOffer(next);
      }),
    [clear],
  );
  useEffect(() => {
    if (offer === null || held) return;
    const timer = setTimeout(() => setOffer(null), OFFER_MS);
    return () => clearTimeout(timer);
  }, [offer, held]);
  const takeBack = async (undoable: Undoable): Promise<void> => {
    if (!(await undo.run(undoable))) return;
    announceChange();
    setSaid("Undone.");
    setOffer(null);
  };
  return createPortal(
    <div className="sessions-toast-place">
      {/* Rendered before the message, as screen readers only announce changes of existing elements. */}
      <output aria-live="polite" className="only-for-readers">
        {offer?.text ?? said}
      </output>
      {offer !== null && (
        // biome-ignore lint/a11y/noStaticElementInteractions: hovering only keeps the message visible, it is not a control.
        <div
          className="sessions-toast"
          onMouseEnter={() => setHeld(true)}
          onMouseLeave={() => setHeld(false)}
          onFocus={() => setHeld(true)}
          onBlur={() => setHeld(false)}
        >
          <p className="sessions-toast-text">{undo.error === null ? offer.text : undo.error.message}</p>
          <button type="button" className="button" disabled={undo.busy} onClick={() => void takeBack(offer)}>
            Undo
          </button>
          <button type="button" className="button button-plain" aria-label="Dismiss" onClick={() => setOffer(null)}>
            ×
          </button>
        </div>
      )}
    </div>,
    document.body,
  );
}
