import type { ReactNode } from "react";
import { visibleText } from "../../markdown/visible-text.ts";
import { formatTime } from "../content/format.ts";

/** The speaker of a row. */
export type Speaker = "user" | "assistant" | "system" | "tool" | "note";

/** The heading of a row: speaker, time and usage. */
export function RowHead({
  speaker,
  name,
  timestamp,
  label,
  facts,
  siblings,
}: {
  readonly speaker: Speaker;
  readonly name: string;
  readonly timestamp: string | null;
  readonly label?: string | undefined;
  readonly facts?: ReactNode;
  /** The switch between the alternative messages at this position. */
  readonly siblings?: ReactNode;
}): ReactNode {
  return (
    <header className="transcript-head">
      <span className={`transcript-who transcript-who-${speaker}`} dir="auto">
        {visibleText(name.slice(0, 120))}
      </span>
      {siblings}
      {label !== undefined && (
        <span className="tag transcript-label" dir="auto">
          <span className="only-for-readers">Label: </span>
          {visibleText(label.slice(0, 120))}
        </span>
      )}
      <span className="transcript-facts small soft">
        {facts}
        {timestamp !== null && (
          <time dateTime={timestamp} title={timestamp}>
            {formatTime(timestamp)}
          </time>
        )}
      </span>
    </header>
  );
}
