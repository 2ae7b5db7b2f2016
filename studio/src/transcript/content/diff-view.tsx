import { type ReactNode, useMemo, useState } from "react";
import { visibleText } from "../../markdown/visible-text.ts";
import type { FileEdit } from "./file-edit.ts";
import { type DiffLine, diffLines } from "./line-diff.ts";
import "./diff-view.css";

const LINES_FIRST = 200;
const LINE_CHARACTERS_MAX = 2000;
const CHARACTERS_MAX = 1_000_000;

/** The change of a file by a call, as removed and added lines. */
export function DiffView({
  edit,
  first = LINES_FIRST,
}: {
  readonly edit: FileEdit;
  /** How many lines are shown at first. */
  readonly first?: number;
}): ReactNode {
  const lines = useMemo(() => linesOf(edit), [edit]);
  const [most, setMost] = useState(first);
  const added = lines.filter(({ kind }) => kind === "added").length;
  const removed = lines.filter(({ kind }) => kind === "removed").length;
  return (
    <figure className="transcript-diff">
      <figcaption className="transcript-diff-head">
        <code>{visibleText(edit.path.slice(0, 400))}</code>
        <span className="transcript-diff-count">
          <ins>+{added}</ins> <del>−{removed}</del>
        </span>
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard. */}
      <pre tabIndex={0}>
        {lines.slice(0, most).map((line, index) => (
          <Line key={index} line={line} />
        ))}
      </pre>
      {lines.length > most && (
        <button type="button" className="button button-plain small" onClick={() => setMost(most + 5 * LINES_FIRST)}>
          Show more of {lines.length.toLocaleString("en")} lines
        </button>
      )}
    </figure>
  );
}

const SIGNS = { same: " ", added: "+", removed: "−" } as const;

function Line({ line: { kind, text } }: { readonly line: DiffLine }): ReactNode {
  const Tag = kind === "added" ? "ins" : kind === "removed" ? "del" : "span";
  const shown = text.length > LINE_CHARACTERS_MAX ? `${text.slice(0, LINE_CHARACTERS_MAX)}…` : text;
  return (
    <Tag className={`transcript-diff-line transcript-diff-${kind}`}>
      <span className="transcript-diff-sign">{SIGNS[kind]}</span>
      {visibleText(shown)}
      {"\n"}
    </Tag>
  );
}

function linesOf({ oldText, newText }: FileEdit): readonly DiffLine[] {
  return diffLines(oldText.slice(0, CHARACTERS_MAX), newText.slice(0, CHARACTERS_MAX));
}
