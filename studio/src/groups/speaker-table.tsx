import type { ReactNode } from "react";
import { formatCompact, formatCost } from "../sessions/list/amounts.ts";
import { AgentBadge } from "./agent-badge.tsx";
import type { Speaker } from "./speakers.ts";

const COLUMNS = ["Turns", "Steps", "Passed", "Failed", "Tokens", "Cost"];

/** The speakers, with their sums. */
export function SpeakerTable({ speakers }: { readonly speakers: readonly Speaker[] }): ReactNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
    <div className="group-scroll" tabIndex={0}>
      <table className="group-speakers">
        <caption className="only-for-readers">Speakers</caption>
        <thead>
          <tr>
            <th scope="col">Who</th>
            {COLUMNS.map((name) => (
              <th key={name} scope="col" className="group-number">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {speakers.map((speaker) => (
            <tr key={speaker.agent ?? ""}>
              <th scope="row">
                <AgentBadge speaker={speaker} />
              </th>
              {[speaker.said, speaker.steps, speaker.passed, speaker.failed].map((count, index) => (
                <td key={COLUMNS[index]} className="group-number">
                  {count}
                </td>
              ))}
              <td className="group-number">{speaker.agent === null ? "" : formatCompact(speaker.tokens)}</td>
              <td className="group-number">{speaker.agent === null ? "" : formatCost(speaker.cost)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
