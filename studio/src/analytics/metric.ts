import type { AnalyticsView, Client } from "skein/client";
import { formatCompact, formatCost, formatCount, formatDuration, formatMoney } from "../sessions/list/amounts.ts";

/** How long answers took and which tools were called, as the server says it. */
export type CallFigures = Awaited<ReturnType<Client["callAnalytics"]>>;

/** How long answers took. */
export type Latency = NonNullable<CallFigures["latency"]>;

/** One sum of the server, with how long the answers in it took where that is known. */
export type AnalyticsRow = AnalyticsView["rows"][number] & { readonly latency?: Latency };

/** A part of a metric that is drawn in a colour of its own. */
export interface Series {
  readonly name: string;
  /** The colour, as a variable of the design tokens. */
  readonly colour: string;
  readonly amountOf: (row: AnalyticsRow) => number;
}

/** Something that is counted. */
export interface Metric {
  readonly id: string;
  readonly name: string;
  /** What is drawn on top of each other. */
  readonly series: readonly Series[];
  readonly totalOf: (row: AnalyticsRow) => number;
  readonly format: (value: number) => string;
  readonly formatShort: (value: number) => string;
}

/** Tokens of which nobody said whether they were read or written. */
export function unsplitTokens({ inputTokens, outputTokens, totalTokens }: AnalyticsRow["usage"]): number {
  return Math.max(0, totalTokens - inputTokens - outputTokens);
}

/** What can be looked at. */
export const METRICS: readonly [Metric, ...Metric[]] = [
  {
    id: "tokens",
    name: "Tokens",
    series: [
      { name: "Input", colour: "var(--accent)", amountOf: ({ usage }) => usage.inputTokens },
      { name: "Output", colour: "var(--tool)", amountOf: ({ usage }) => usage.outputTokens },
      { name: "Not split", colour: "var(--ink-soft)", amountOf: ({ usage }) => unsplitTokens(usage) },
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
        // Drawn on top of the median.
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

/** Rows with how long the answers in them took. */
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
