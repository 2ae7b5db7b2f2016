import { type ReactNode, useState } from "react";
import { formatCost, formatCount, formatDuration } from "../sessions/list/amounts.ts";
import { type AnalyticsRow, unsplitTokens } from "./metric.ts";

/** The numbers of each day with activity, latest first. */
export function DayTable({
  rows,
  labelledBy,
}: {
  readonly rows: readonly AnalyticsRow[];
  readonly labelledBy: string;
}): ReactNode {
  const [open, setOpen] = useState(false);
  const latestFirst = [...rows].sort((a, b) => (b.day ?? "").localeCompare(a.day ?? ""));
  return (
    <details className="analytics-details" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a table</summary>
      {open && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable element must be reachable by keyboard.
        <section className="analytics-scroll" tabIndex={0} aria-labelledby={labelledBy}>
          <table className="analytics-table" aria-labelledby={labelledBy}>
            <thead>
              <tr>
                <th scope="col">Day (UTC)</th>
                {COLUMNS.map(({ name }) => (
                  <th key={name} scope="col" className="analytics-number">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {latestFirst.map((row) => (
                <tr key={row.day}>
                  <th scope="row" className="analytics-date">
                    {row.day}
                  </th>
                  {COLUMNS.map(({ name, text }) => (
                    <td key={name} className="analytics-number">
                      {text(row)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </details>
  );
}

const COLUMNS: readonly { readonly name: string; readonly text: (row: AnalyticsRow) => string }[] = [
  { name: "Sessions", text: ({ sessions }) => formatCount(sessions) },
  { name: "Messages", text: ({ messages }) => formatCount(messages) },
  { name: "Tool calls", text: ({ toolCalls }) => formatCount(toolCalls) },
  { name: "Input tokens", text: ({ usage }) => formatCount(usage.inputTokens) },
  { name: "Output tokens", text: ({ usage }) => formatCount(usage.outputTokens) },
  { name: "Unspecified", text: ({ usage }) => formatCount(unsplitTokens(usage)) },
  { name: "Tokens", text: ({ usage }) => formatCount(usage.totalTokens) },
  { name: "Cost", text: ({ cost }) => formatCost(cost) },
  { name: "Median latency", text: ({ latency }) => (latency === undefined ? "–" : formatDuration(latency.medianMs)) },
  { name: "95th percentile", text: ({ latency }) => (latency === undefined ? "–" : formatDuration(latency.p95Ms)) },
];
