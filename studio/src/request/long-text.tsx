import { type ReactNode, useState } from "react";
import { plainText } from "./plain-text.ts";
import "./long-text.css";

const CHARACTERS = 4_000;

/** A text as it is, in pieces: one of millions of characters is not put on the page at once. */
export function LongText({ text, className }: { readonly text: string; readonly className?: string }): ReactNode {
  const [shown, setShown] = useState(CHARACTERS);
  const left = text.length - shown;
  return (
    <div className={className}>
      <pre dir="auto" className="long-text">
        {plainText(text.slice(0, shown))}
        {left > 0 && "…"}
      </pre>
      {left > 0 && (
        <button type="button" className="button small" onClick={() => setShown(shown + 10 * CHARACTERS)}>
          Show more ({left.toLocaleString("en")} characters left)
        </button>
      )}
    </div>
  );
}
