import { type ReactNode, useEffect, useState } from "react";

const SHOWN_MS = 1500;

/** Puts a text on the clipboard, and says whether that worked. */
export function CopyButton({
  label,
  text,
  className = "button button-plain small",
}: {
  /** What the button is called, as in "Copy link". */
  readonly label: string;
  /** The text, made when it is wanted. */
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
    // Where the page is not served securely there is no clipboard at all.
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
