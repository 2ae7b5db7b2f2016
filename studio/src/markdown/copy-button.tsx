import { type ReactNode, useEffect, useState } from "react";

const SHOWN_MS = 1500;

/** A button that copies a text to the clipboard, and shows whether that worked. */
export function CopyButton({
  label,
  text,
  className = "button button-plain small",
}: {
  /** The label of the button, as in "Copy link". */
  readonly label: string;
  /** Returns the text; called on a click. */
  readonly text: () => string;
  readonly className?: string;
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
    <button type="button" className={className} onClick={copy} aria-live="polite">
      {said ?? label}
    </button>
  );
}
