import { type ReactNode, useMemo, useState } from "react";
import { LongText } from "../../markdown/long-text.tsx";
import { visibleText } from "../../markdown/visible-text.ts";
import { ansiPieces } from "./ansi-text.ts";
import type { CallOutput } from "./call-output.ts";
import { DiffView } from "./diff-view.tsx";
import "./call-output.css";

/** How much is shown while the call is folded. */
const LINES_FOLDED = 5;
const DIFF_LINES_FOLDED = 8;
const LINE_CHARACTERS_FOLDED = 300;
/** How much is shown at first of an open call. */
const CHARACTERS_FIRST = 20_000;

/** Shows the result of a call: terminal output, a diff, a file, a table or a text. A folded call shows the beginning only. */
export function CallOutputView({
  output,
  folded,
}: {
  readonly output: CallOutput;
  readonly folded: boolean;
}): ReactNode {
  return (
    <div className={output.failed ? "call-output call-output-failed" : "call-output"}>
      <Body output={output} folded={folded} />
      {output.note !== null && <p className="small soft">{visibleText(output.note)}</p>}
    </div>
  );
}

function Body({ output, folded }: { readonly output: CallOutput; readonly folded: boolean }): ReactNode {
  switch (output.kind) {
    case "edit":
      return folded ? <DiffView edit={output.edit} first={DIFF_LINES_FOLDED} /> : <DiffView edit={output.edit} />;
    case "terminal":
      return <Terminal output={output} folded={folded} />;
    case "file":
      return <FileText output={output} folded={folded} />;
    case "table":
      return <Table output={output} folded={folded} />;
    default: {
      const { lines, more } = folded ? beginningOf(output.text) : { lines: output.text, more: 0 };
      return folded ? (
        <pre className="call-output-text small" dir="auto">
          {visibleText(lines)}
          <More count={more} />
        </pre>
      ) : (
        <LongText text={lines} first={4000} />
      );
    }
  }
}

function Terminal({
  output: { command, language, stdout, stderr, exitCode },
  folded,
}: {
  readonly output: Extract<CallOutput, { kind: "terminal" }>;
  readonly folded: boolean;
}): ReactNode {
  const [most, setMost] = useState(CHARACTERS_FIRST);
  const printed = stdout.trimEnd();
  const complaints = stderr.trimEnd();
  // The end of a failed command's errors says more than the beginning of its output.
  const out = folded ? beginningOf(printed) : { lines: printed.slice(0, most), more: 0 };
  const room = folded ? Math.max(0, LINES_FOLDED - countLines(out.lines)) : 0;
  const err = folded ? beginningOf(complaints, Math.max(room, 2)) : { lines: complaints.slice(0, most), more: 0 };
  const left = folded ? 0 : Math.max(printed.length, complaints.length) - most;
  return (
    <div className="terminal">
      <pre className="terminal-screen small" dir="ltr" tabIndex={folded ? undefined : 0}>
        {command !== null && (
          <strong className="terminal-command">
            {language === null ? (
              "$ "
            ) : (
              <span className="terminal-dim">{`${visibleText(language.slice(0, 40))}\n`}</span>
            )}
            {visibleText(folded ? cut(command, 2 * LINE_CHARACTERS_FOLDED) : command)}
          </strong>
        )}
        {command !== null && out.lines !== "" && "\n"}
        <Ansi text={out.lines} />
        <More count={out.more} />
        {err.lines !== "" && (
          <span className="terminal-errors">
            {(command !== null || out.lines !== "") && "\n"}
            <Ansi text={err.lines} />
          </span>
        )}
        <More count={err.more} />
        {left > 0 && "…"}
      </pre>
      {left > 0 && (
        <button type="button" className="button small" onClick={() => setMost(most + 10 * CHARACTERS_FIRST)}>
          Show more of {Math.max(printed.length, complaints.length).toLocaleString("en")} characters
        </button>
      )}
      {exitCode !== null && exitCode !== 0 && <p className="terminal-exit small">Exit code {exitCode}</p>}
    </div>
  );
}

function Ansi({ text }: { readonly text: string }): ReactNode {
  const pieces = useMemo(() => ansiPieces(text), [text]);
  return pieces.map(({ text: shown, style }, index) =>
    style.length === 0 ? (
      visibleText(shown)
    ) : (
      <span key={index} className={style.map((name) => `terminal-${name}`).join(" ")}>
        {visibleText(shown)}
      </span>
    ),
  );
}

function FileText({
  output: { path, text, firstLine },
  folded,
}: {
  readonly output: Extract<CallOutput, { kind: "file" }>;
  readonly folded: boolean;
}): ReactNode {
  const [most, setMost] = useState(CHARACTERS_FIRST);
  const { lines, more } = folded ? beginningOf(text) : { lines: text.slice(0, most), more: 0 };
  const shown = visibleText(lines);
  const count = countLines(shown);
  return (
    <figure className="file-text">
      <figcaption className="file-text-name">
        <code>{visibleText(path.slice(0, 400))}</code>
        <span className="small soft">{countLines(text).toLocaleString("en")} lines</span>
      </figcaption>
      <div className="file-text-lines small" dir="ltr" tabIndex={folded ? undefined : 0}>
        <pre className="file-text-numbers" aria-hidden="true">
          {Array.from({ length: count }, (_, index) => firstLine + index).join("\n")}
        </pre>
        <pre>
          {shown}
          <More count={more} />
        </pre>
      </div>
      {!folded && text.length > most && (
        <button type="button" className="button small" onClick={() => setMost(most + 10 * CHARACTERS_FIRST)}>
          Show more of {text.length.toLocaleString("en")} characters
        </button>
      )}
    </figure>
  );
}

function Table({
  output: { columns, rows },
  folded,
}: {
  readonly output: Extract<CallOutput, { kind: "table" }>;
  readonly folded: boolean;
}): ReactNode {
  if (rows.length === 0) return null;
  const shown = folded ? rows.slice(0, LINES_FOLDED) : rows;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
    <div className="call-output-table small" tabIndex={0}>
      <table>
        <thead>
          <tr>
            {columns.map((name) => (
              <th key={name} scope="col">
                {visibleText(name)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row, index) => (
            <tr key={index}>
              {row.map((cell, column) => (
                <td key={columns[column]} dir="auto">
                  {visibleText(cell)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > shown.length && <p className="soft">… {(rows.length - shown.length).toLocaleString("en")} more</p>}
    </div>
  );
}

function More({ count }: { readonly count: number }): ReactNode {
  if (count <= 0) return null;
  return (
    <span className="call-output-more">{`\n… ${count.toLocaleString("en")} more ${count === 1 ? "line" : "lines"}`}</span>
  );
}

/** The first lines of a text, and how many more there are. */
function beginningOf(text: string, most = LINES_FOLDED): { readonly lines: string; readonly more: number } {
  const lines = text.trimEnd() === "" ? [] : text.trimEnd().split(/\r?\n/);
  const shown = lines.slice(0, most).map((line) => cut(line, LINE_CHARACTERS_FOLDED));
  return { lines: shown.join("\n"), more: lines.length - shown.length };
}

function countLines(text: string): number {
  return text === "" ? 0 : text.replace(/\n$/, "").split("\n").length;
}

function cut(text: string, charactersMax: number): string {
  return text.length > charactersMax ? `${text.slice(0, charactersMax)}…` : text;
}
