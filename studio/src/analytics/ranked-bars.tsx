import { type ReactNode, useId } from "react";
import type { AnalyticsRow, Metric } from "./metric.ts";

const ROWS_MAX = 50;

/** A metric by something that has a name, the largest first: a table whose rows have bars. */
export function RankedBars({
  title,
  column,
  rows,
  nameOf,
  metric,
}: {
  readonly title: string;
  readonly column: string;
  readonly rows: readonly AnalyticsRow[];
  readonly nameOf: (row: AnalyticsRow) => string;
  readonly metric: Metric;
}): ReactNode {
  const id = useId();
  const { totalOf, format, name } = metric;
  const ranked = rows.filter((row) => totalOf(row) > 0).sort((a, b) => totalOf(b) - totalOf(a));
  const largest = Math.max(0, ...ranked.map(totalOf));
  return (
    <section className="analytics-card" aria-labelledby={id}>
      <h2 id={id} className="analytics-heading">
        {title}
      </h2>
      {ranked.length === 0 ? (
        <p className="soft">Nothing in this time.</p>
      ) : (
        <table className="analytics-table analytics-ranked" aria-labelledby={id}>
          <thead className="only-for-readers">
            <tr>
              <th scope="col">{column}</th>
              <th scope="col">{name}</th>
            </tr>
          </thead>
          <tbody>
            {ranked.slice(0, ROWS_MAX).map((row) => (
              <tr key={nameOf(row)}>
                <th scope="row">
                  <bdi>{nameOf(row)}</bdi>
                  <Bar part={largest > 0 ? totalOf(row) / largest : 0} />
                </th>
                <td className="analytics-number">{format(totalOf(row))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {ranked.length > ROWS_MAX && <p className="soft small">And {ranked.length - ROWS_MAX} more.</p>}
    </section>
  );
}

function Bar({ part }: { readonly part: number }): ReactNode {
  return (
    <svg className="analytics-bar" aria-hidden="true" width="100%" height="8">
      <rect width="100%" height="8" rx="4" className="analytics-track" />
      <rect width={`${Math.max(part * 100, part > 0 ? 1 : 0)}%`} height="8" rx="4" className="analytics-fill" />
    </svg>
  );
}
