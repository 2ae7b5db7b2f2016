import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { useDismiss } from "./use-dismiss.ts";

/** An item of a menu. */
export interface MenuItem {
  readonly name: string;
  readonly disabled?: boolean;
  readonly danger?: boolean;
  readonly act: () => void;
}

/** A button that opens a menu; arrow keys move in it, Escape closes it. */
export function Menu({
  name,
  label,
  items,
}: {
  readonly name: string;
  readonly label: string;
  readonly items: readonly MenuItem[];
}): ReactNode {
  const [open, setOpen] = useState(false);
  const id = useId();
  const whole = useRef<HTMLDivElement>(null);
  const close = useDismiss(whole, open, () => setOpen(false));
  useEffect(() => {
    if (open) entriesIn(whole.current)[0]?.focus();
  }, [open]);
  const move = (event: KeyboardEvent): void => {
    const entries = entriesIn(whole.current);
    const at = entries.indexOf(document.activeElement as HTMLElement);
    const targets: Readonly<Record<string, number>> = {
      ArrowDown: (at + 1) % entries.length,
      ArrowUp: (at - 1 + entries.length) % entries.length,
      Home: 0,
      End: entries.length - 1,
    };
    const target = targets[event.key];
    if (event.key === "Tab") setOpen(false);
    if (target === undefined) return;
    event.preventDefault();
    entries[target]?.focus();
  };
  return (
    <div ref={whole} className="sessions-menu">
      <button
        type="button"
        className="button"
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen((before) => !before)}
      >
        {name} <span aria-hidden="true">▾</span>
      </button>
      {open && (
        <div id={id} role="menu" aria-label={label} tabIndex={-1} className="sessions-panel" onKeyDown={move}>
          {items.map((item) => (
            <button
              key={item.name}
              type="button"
              role="menuitem"
              className={`button button-plain${item.danger === true ? " button-danger" : ""}`}
              disabled={item.disabled === true}
              onClick={() => {
                close();
                item.act();
              }}
            >
              {item.name}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

function entriesIn(whole: HTMLElement | null): readonly HTMLElement[] {
  return [...(whole?.querySelectorAll<HTMLElement>("[role=menuitem]:not(:disabled)") ?? [])];
}
