import { type ReactNode, useState } from "react";
import { formatCompact, formatCost } from "../sessions/list/amounts.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { visibleText } from "../markdown/visible-text.ts";
import type { Piece } from "./compare-words.ts";
import type { TurnRow } from "./turn-row.ts";

const CHARACTERS_FIRST = 4000;
/** Longer texts would make the page slow; the transcript and the exports have the full text. */
const CHARACTERS_MAX = 200_000;
const ARGUMENTS_MAX = 2000;

/** One turn of a side, as Markdown; results of tools and settings as text. */
export function TurnCard({
  row,
  pieces,
  side,
  same = false,
}: {
  readonly row: TurnRow;
  /** The text in pieces if it is compared with another; null otherwise. */
  readonly pieces: readonly Piece[] | null;
  readonly side?: "left" | "right";
  readonly same?: boolean;
}): ReactNode {
  const [all, setAll] = useState(false);
  const shown = cut(pieces ?? [{ text: row.text, own: false }], all ? CHARACTERS_MAX : CHARACTERS_FIRST);
  const { length } = row.text;
  return (
    <article className={`compare-turn compare-turn-${row.kind}${row.failed ? " compare-turn-failed" : ""}`}>
      <p className="compare-turn-head small">
        {side !== undefined && (
          <span className={`compare-letter compare-letter-${side} compare-letter-narrow`} aria-hidden="true">
            {side === "left" ? "A" : "B"}
          </span>
        )}
        <strong>{visibleText(row.title)}</strong>
        {row.failed && <span className="compare-refused">failed</span>}
        {same && <span className="tag">same in both</span>}
        {row.tokens > 0 && (
          <span className="soft">
            {formatCompact(row.tokens)} tokens · {formatCost(row.cost?.cost ?? null, row.cost?.computed)}
          </span>
        )}
      </p>
      {length > 0 && (
        <div className={`compare-text${row.isMarkdown ? "" : " compare-text-plain"}`} dir="auto">
          {row.isMarkdown ? (
            <Markdown
              text={shown.map((piece) => piece.text).join("")}
              marks={{ pieces: shown, className: `compare-own-${side ?? "left"}` }}
            />
          ) : (
            <Pieces pieces={shown} side={side ?? "left"} />
          )}
        </div>
      )}
      {length > CHARACTERS_FIRST && !all && (
        <button type="button" className="button button-plain small" onClick={() => setAll(true)}>
          Show more of {length.toLocaleString("en")} characters
        </button>
      )}
      {all && length > CHARACTERS_MAX && <p className="small soft">The rest is in the exports of the session.</p>}
      {row.calls.map((call) => (
        <details key={call.id} className="compare-call small">
          <summary>
            calls <code>{visibleText(call.name)}</code>
          </summary>
          <pre>{visibleText(call.arguments.slice(0, ARGUMENTS_MAX))}</pre>
        </details>
      ))}
    </article>
  );
}

function Pieces({ pieces, side }: { readonly pieces: readonly Piece[]; readonly side: "left" | "right" }): ReactNode {
  return pieces.map((piece, index) => {
    // The pieces of a text are never reordered, so the index is a stable key.
    const key = `${index}`;
    const text = visibleText(piece.text);
    return piece.own ? (
      <mark key={key} className={`compare-own-${side}`}>
        {text}
      </mark>
    ) : (
      <span key={key}>{text}</span>
    );
  });
}

function cut(pieces: readonly Piece[], charactersMax: number): readonly Piece[] {
  const shown: Piece[] = [];
  let left = charactersMax;
  for (const { text, own } of pieces) {
    if (left <= 0) break;
    shown.push({ text: text.length > left ? `${text.slice(0, left)}…` : text, own });
    left -= text.length;
  }
  return shown;
}
