import type { ReactNode } from "react";
import type { AnalyticsRow, Metric } from "./metric.ts";

/** Above this number of days, lines are drawn: bars would be too thin to tell apart. */
const BARS_MAX = 100;

/** The bars or lines of a chart by day. */
export function DayMarks({
  days,
  byDay,
  metric,
  xOf,
  yOf,
}: {
  readonly days: readonly string[];
  readonly byDay: ReadonlyMap<string, AnalyticsRow>;
  readonly metric: Metric;
  readonly xOf: (index: number) => number;
  readonly yOf: (value: number) => number;
}): ReactNode {
  const amountOf = (day: string, series: number): number => {
    const row = byDay.get(day);
    return row === undefined ? 0 : (metric.series[series]?.amountOf(row) ?? 0);
  };
  const below = (day: string, series: number): number =>
    metric.series.slice(0, series).reduce((sum, _, index) => sum + amountOf(day, index), 0);
  if (days.length > BARS_MAX) {
    return metric.series.map(({ name, colour }, series) => (
      <polyline
        key={name}
        className="analytics-curve"
        style={{ stroke: colour }}
        points={days
          .map((day, index) => `${(xOf(index) + xOf(index + 1)) / 2},${yOf(amountOf(day, series))}`)
          .join(" ")}
      />
    ));
  }
  return days.map((day, index) => {
    const row = byDay.get(day);
    const [left, right] = [xOf(index), xOf(index + 1)];
    const gap = Math.min((right - left) * 0.2, 8);
    return (
      <g key={day} className="analytics-day">
        <title>{row === undefined ? `${day}: nothing` : `${day}: ${metric.format(metric.totalOf(row))}`}</title>
        <rect className="analytics-band" x={left} width={Math.max(right - left, 0)} y={0} height={yOf(0)} />
        {metric.series.map(({ name, colour }, series) => {
          const [from, to] = [below(day, series), below(day, series) + amountOf(day, series)];
          return (
            <rect
              key={name}
              x={left + gap / 2}
              width={Math.max(right - left - gap, 1)}
              y={yOf(to)}
              height={Math.max(yOf(from) - yOf(to), 0)}
              style={{ fill: colour }}
            />
          );
        })}
      </g>
    );
  });
}
