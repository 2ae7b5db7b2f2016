import type { ReactNode } from "react";
import { visibleText } from "../markdown/visible-text.ts";
import { formatCount } from "../sessions/list/amounts.ts";
import { DayChart } from "./day-chart.tsx";
import { type AnalyticsRow, type CallFigures, type Metric, withLatency } from "./metric.ts";
import { RankedBars, type RankedItem } from "./ranked-bars.tsx";
import type { Sums } from "./use-analytics.ts";

/** The sums of a period as charts: by day, model and user, and the calls by tool. */
export function SumCharts({
  sums: { byDay, byModel, byUser },
  calls,
  days,
  metric,
}: {
  readonly sums: Sums;
  /** Null while they are loading. */
  readonly calls: CallFigures | null;
  readonly days: readonly string[];
  readonly metric: Metric;
}): ReactNode {
  const itemsOf = (rows: readonly AnalyticsRow[], nameOf: (row: AnalyticsRow) => string): readonly RankedItem[] =>
    rows.map((row) => {
      const amount = metric.totalOf(row);
      return { name: nameOf(row), amount, text: metric.format(amount) };
    });
  return (
    <>
      <DayChart days={days} rows={withLatency(byDay, "day", calls?.byDay ?? [])} metric={metric} />
      <RankedBars
        title={`${metric.name} by model`}
        columns={["Model", metric.name]}
        items={itemsOf(withLatency(byModel, "model", calls?.byModel ?? []), ({ model }) => model ?? "No model")}
      />
      <RankedBars
        title={`${metric.name} by user`}
        columns={["User", metric.name]}
        items={itemsOf(withLatency(byUser, "user", calls?.byUser ?? []), ({ user }) => user ?? "No user")}
      />
      <RankedBars title="Calls by tool" columns={["Tool", "Calls"]} items={(calls?.tools ?? []).map(toolItem)} />
    </>
  );
}

function toolItem({ tool, calls, failed }: CallFigures["tools"][number]): RankedItem {
  const text = failed === 0 ? formatCount(calls) : `${formatCount(calls)}, ${formatCount(failed)} failed`;
  return { name: visibleText(tool.slice(0, 120)), amount: calls, text };
}
