import type { AnalyticsView, Client } from "skein/client";
import { formatCompact, formatCost, formatCount, formatDuration, formatMoney } from "../sessions/list/amounts.ts";

/** Latencies of answers and calls by tool, as the server returns them. */
export type CallFigures = Awaited<ReturnType<Client["callAnalytics"]>>;

/** Latencies of answers. */
export type Latency = NonNullable<CallFigures["latency"]>;

/** A row of sums from the server, with the latency of its answers if it is known. */
export type AnalyticsRow = AnalyticsView["rows"][number] & { readonly latency?: Latency };

/** A part of a metric, drawn in one colour. */
export interface Series {
  readonly name: string;
  /** The colour, as a CSS variable of the design tokens. */
  readonly colour: string;
  readonly amountOf: (row: AnalyticsRow) => number;
}

/** Something that a chart can show. */
export interface Metric {
  readonly id: string;
  readonly name: string;
  /** The parts that are stacked. */
  readonly series: readonly Series[];
  readonly totalOf: (row: AnalyticsRow) => number;
  readonly format: (value: number) => string;
  readonly formatShort: (value: number) => string;
}

/** Tokens that the provider reported as neither input nor output. */
export function unsplitTokens({ inputTokens, outputTokens, totalTokens }: AnalyticsRow["usage"]): number {
  return Math.max(0, totalTokens - inputTokens - outputTokens);
}

/** The metrics to choose from. */
export const METRICS: readonly [Metric, ...Metric[]] = [
  {
    id: "tokens",
    name: "Tokens",
    series: [
      { name: "Input", colour: "var(--accent)", amountOf: ({ usage }) => usage.inputTokens },
      { name: "Output", colour: "var(--tool)", amountOf: ({ usage }) => usage.outputTokens },
      { name: "Unspecified", colour: "var(--ink-soft)", amountOf: ({ usage }) => unsplitTokens(usage) },
    ],
    totalOf: ({ usage }) => usage.totalTokens,
    format: formatCount,
    formatShort: formatCompact,
  },
  single("cost", "Cost", ({ cost }) => cost, formatCost, formatMoney),
  {
    id: "latency",
    name: "Latency",
    series: [
      { name: "Median", colour: "var(--accent)", amountOf: ({ latency }) => latency?.medianMs ?? 0 },
      {
        name: "95th percentile",
        colour: "var(--tool)",
        // Stacked on the median.
        amountOf: ({ latency }) => (latency === undefined ? 0 : latency.p95Ms - latency.medianMs),
      },
    ],
    totalOf: ({ latency }) => latency?.medianMs ?? 0,
    format: formatDuration,
    formatShort: formatDuration,
  },
  single("messages", "Messages", ({ messages }) => messages, formatCount, formatCompact),
  single("tools", "Tool calls", ({ toolCalls }) => toolCalls, formatCount, formatCompact),
  single("sessions", "Sessions", ({ sessions }) => sessions, formatCount, formatCompact),
];

/** The rows with the latencies of their answers. */
export function withLatency<K extends "day" | "model" | "user">(
  rows: readonly AnalyticsRow[],
  key: K,
  measured: readonly (Latency & { readonly [name in K]: string | null })[],
): readonly AnalyticsRow[] {
  const found = new Map<string | null, Latency>(measured.map((latency) => [latency[key], latency]));
  return rows.map((row) => {
    const latency = found.get(row[key] ?? null);
    return latency === undefined ? row : { ...row, latency };
  });
}

function single(
  id: string,
  name: string,
  totalOf: Metric["totalOf"],
  format: Metric["format"],
  formatShort: Metric["format"],
): Metric {
  return { id, name, series: [{ name, colour: "var(--accent)", amountOf: totalOf }], totalOf, format, formatShort };
}
