import { type ReactNode, useId } from "react";

const ROWS_MAX = 50;

/** A named amount. */
export interface RankedItem {
  readonly name: string;
  readonly amount: number;
  /** The amount, formatted. */
  readonly text: string;
}

/** A table of named amounts with bars, largest first. */
export function RankedBars({
  title,
  columns,
  items,
}: {
  readonly title: string;
  /** The headings of the two columns. */
  readonly columns: readonly [string, string];
  readonly items: readonly RankedItem[];
}): ReactNode {
  const id = useId();
  const ranked = items.filter(({ amount }) => amount > 0).sort((a, b) => b.amount - a.amount);
  const largest = ranked[0]?.amount ?? 0;
  return (
    <section className="analytics-card" aria-labelledby={id}>
      <h2 id={id} className="analytics-heading">
        {title}
      </h2>
      {ranked.length === 0 ? (
        <p className="soft">No data in this period.</p>
      ) : (
        <table className="analytics-table analytics-ranked" aria-labelledby={id}>
          <thead className="only-for-readers">
            <tr>
              {columns.map((column) => (
                <th key={column} scope="col">
                  {column}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ranked.slice(0, ROWS_MAX).map(({ name, amount, text }) => (
              <tr key={name}>
                <th scope="row">
                  <bdi>{name}</bdi>
                  <Bar part={amount / largest} />
                </th>
                <td className="analytics-number">{text}</td>
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
