import type { ReactNode } from "react";
import { visibleText } from "../../markdown/visible-text.ts";
import type { CallGlance } from "./call-glance.ts";
import { DiffView } from "./diff-view.tsx";
import "./call-glance.css";

const DIFF_LINES = 8;

/** A call at a glance: a diff, a command with the beginning of its output, or a table. */
export function CallGlanceView({ glance }: { readonly glance: CallGlance }): ReactNode {
  if (glance.kind === "edit") return <DiffView edit={glance.edit} first={DIFF_LINES} />;
  if (glance.kind === "lines") {
    const { command, lines, more } = glance;
    return (
      <pre className="transcript-glance small" dir="auto">
        {command !== null && <strong>$ {visibleText(command)}</strong>}
        {command !== null && lines.length > 0 && "\n"}
        {visibleText(lines.join("\n"))}
        {more > 0 && (
          <span className="soft">{`\n… ${more.toLocaleString("en")} more ${more === 1 ? "line" : "lines"}`}</span>
        )}
      </pre>
    );
  }
  const { columns, rows, more } = glance;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
    <div className="transcript-glance-table small" tabIndex={0}>
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
          {rows.map((row, index) => (
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
      {more > 0 && <p className="soft">… {more.toLocaleString("en")} more</p>}
    </div>
  );
}
