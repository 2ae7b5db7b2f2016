import type { ReactNode } from "react";
import { visibleText } from "../markdown/visible-text.ts";
import type { ValueDifference } from "./setting-differences.ts";

const CHARACTERS_MAX = 1000;

/** The variables and settings that differ. */
export function DifferentValues({ differences }: { readonly differences: readonly ValueDifference[] }): ReactNode {
  if (differences.length === 0) return null;
  return (
    <section className="compare-values" aria-label="Variables that differ">
      <h2>Variables that differ</h2>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard. */}
      <div className="compare-scroll" tabIndex={0}>
        <table>
          <thead>
            <tr>
              <th scope="col">Variable</th>
              <th scope="col">A</th>
              <th scope="col">B</th>
            </tr>
          </thead>
          <tbody>
            {differences.map(({ name, left, right }) => (
              <tr key={name}>
                <th scope="row">{visibleText(name)}</th>
                <td>
                  <Value text={left} />
                </td>
                <td>
                  <Value text={right} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function Value({ text }: { readonly text: string | null }): ReactNode {
  if (text === null) return <span className="soft">not set</span>;
  const shown = text.length > CHARACTERS_MAX ? `${text.slice(0, CHARACTERS_MAX)}…` : text;
  return <code className="compare-value">{visibleText(shown)}</code>;
}
