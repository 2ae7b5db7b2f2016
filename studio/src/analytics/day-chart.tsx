import { type ReactNode, useId } from "react";
import { labelStride, ticksUpTo } from "./chart-scale.ts";
import { DayMarks } from "./day-marks.tsx";
import { DayTable } from "./day-table.tsx";
import type { AnalyticsRow, Metric } from "./metric.ts";
import { useWidth } from "./use-width.ts";
import "./day-chart.css";

const HEIGHT_PX = 240;
const LEFT_PX = 56;
const RIGHT_PX = 24;
const BOTTOM_PX = 24;
const TOP_PX = 12;
const LABEL_WIDTH_PX = 64;

const DAY = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" });
const MONTH = new Intl.DateTimeFormat("en", { year: "numeric", month: "short", timeZone: "UTC" });

/** A metric by day, as a chart and as a table. */
export function DayChart({
  days,
  rows,
  metric,
}: {
  readonly days: readonly string[];
  readonly rows: readonly AnalyticsRow[];
  readonly metric: Metric;
}): ReactNode {
  const [ref, width] = useWidth<HTMLDivElement>();
  const id = useId();
  const byDay = new Map(rows.map((row) => [row.day ?? "", row]));
  const stackOf = (row: AnalyticsRow | undefined): number =>
    row === undefined ? 0 : metric.series.reduce((sum, { amountOf }) => sum + amountOf(row), 0);
  const ticks = ticksUpTo(Math.max(0, ...days.map((day) => stackOf(byDay.get(day)))), 4);
  const top = ticks.at(-1) ?? 1;
  const inner = { width: Math.max(width - LEFT_PX - RIGHT_PX, 0), height: HEIGHT_PX - TOP_PX - BOTTOM_PX };
  const yOf = (value: number): number => TOP_PX + inner.height * (1 - value / top);
  const xOf = (index: number): number => LEFT_PX + (inner.width * index) / Math.max(days.length, 1);
  const stride = labelStride(days.length, inner.width, LABEL_WIDTH_PX);
  const format = days.length > 366 ? MONTH : DAY;
  return (
    <figure className="analytics-card analytics-wide">
      <figcaption id={id} className="analytics-caption">
        <h2 className="analytics-heading">{metric.name} by day</h2>
        <Legend metric={metric} />
      </figcaption>
      <div ref={ref} className="analytics-drawing">
        {width > 0 && (
          <svg role="img" aria-label={summaryOf(days, byDay, metric)} width={width} height={HEIGHT_PX}>
            {ticks.map((tick) => (
              <g key={tick}>
                <line className="analytics-line" x1={LEFT_PX} x2={width - RIGHT_PX} y1={yOf(tick)} y2={yOf(tick)} />
                <text className="analytics-label" x={LEFT_PX - 8} y={yOf(tick)} dy="0.32em" textAnchor="end">
                  {metric.formatShort(tick)}
                </text>
              </g>
            ))}
            <DayMarks days={days} byDay={byDay} metric={metric} xOf={xOf} yOf={yOf} />
            {days.map((day, index) =>
              (days.length - 1 - index) % stride === 0 ? (
                <text
                  key={day}
                  className="analytics-label"
                  x={(xOf(index) + xOf(index + 1)) / 2}
                  y={HEIGHT_PX - 6}
                  textAnchor="middle"
                >
                  {format.format(Date.parse(day))}
                </text>
              ) : null,
            )}
          </svg>
        )}
      </div>
      <DayTable rows={rows} labelledBy={id} />
    </figure>
  );
}

function Legend({ metric }: { readonly metric: Metric }): ReactNode {
  if (metric.series.length < 2) return null;
  return (
    <ul className="analytics-legend small" aria-label="Colours">
      {metric.series.map(({ name, colour }) => (
        <li key={name}>
          <span className="analytics-swatch" style={{ background: colour }} />
          {name}
        </li>
      ))}
    </ul>
  );
}

function summaryOf(days: readonly string[], byDay: ReadonlyMap<string, AnalyticsRow>, metric: Metric): string {
  const busiest = days
    .map((day) => ({ day, row: byDay.get(day) }))
    .filter((each): each is { day: string; row: AnalyticsRow } => each.row !== undefined)
    .reduce<{ day: string; row: AnalyticsRow } | null>(
      (best, each) => (best === null || metric.totalOf(each.row) > metric.totalOf(best.row) ? each : best),
      null,
    );
  if (busiest === null) return `${metric.name} by day: no data in this period.`;
  const most = `The most was ${metric.format(metric.totalOf(busiest.row))} on ${busiest.day}.`;
  return `${metric.name} by day from ${days[0]} to ${days.at(-1)}. ${most} The table below has every day.`;
}
