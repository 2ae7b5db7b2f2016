import { type ReactNode, useState } from "react";
import { visibleText } from "./visible-text.ts";
import "./markdown.css";

const FIRST_CHARACTERS = 20_000;
const STEP_CHARACTERS = 200_000;

/** A plain text of any length: its beginning, and more on demand. */
export function LongText({
  text,
  first = FIRST_CHARACTERS,
}: {
  readonly text: string;
  /** How many characters are shown at first. */
  readonly first?: number;
}): ReactNode {
  const [most, setMost] = useState(first);
  const left = text.length - most;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard. */}
      <pre className="markdown-plain" dir="auto" tabIndex={0}>
        {visibleText(left > 0 ? text.slice(0, most) : text)}
        {left > 0 && "…"}
      </pre>
      {left > 0 && (
        <button type="button" className="button small" onClick={() => setMost(most + STEP_CHARACTERS)}>
          Show {Math.min(left, STEP_CHARACTERS).toLocaleString("en")} more of {text.length.toLocaleString("en")}{" "}
          characters
        </button>
      )}
    </>
  );
}
