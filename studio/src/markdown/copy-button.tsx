import { Icon, type IconName } from "../shell/icon.tsx";
import { type ReactNode, useEffect, useState } from "react";

const SHOWN_MS = 1500;

/** A button that copies a text to the clipboard, and shows whether that worked. */
export function CopyButton({
  label,
  text,
  icon,
}: {
  /** The label of the button, as in "Copy link". */
  readonly label: string;
  /** Returns the text; called on a click. */
  readonly text: () => string;
  /** Shown in place of the label, which is then its name. */
  readonly icon?: IconName;
}): ReactNode {
  const [said, setSaid] = useState<string | null>(null);
  useEffect(() => {
    if (said === null) return;
    const timer = setTimeout(() => setSaid(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = (): void => {
    // The clipboard is missing on a page without HTTPS.
    const copied = navigator.clipboard?.writeText(text()) ?? Promise.reject(new Error("There is no clipboard."));
    copied.then(
      () => setSaid("Copied"),
      () => setSaid("Not copied"),
    );
  };
  return (
    <button
      type="button"
      className={`button button-plain small${icon === undefined || said !== null ? "" : " button-icon"}`}
      aria-label={icon !== undefined && said === null ? label : undefined}
      title={icon === undefined ? undefined : label}
      onClick={copy}
      aria-live="polite"
    >
      {said ?? (icon === undefined ? label : <Icon name={icon} />)}
    </button>
  );
}
