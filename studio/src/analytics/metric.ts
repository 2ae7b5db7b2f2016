import type { AnalyticsView } from "skein/client";
import { formatCompact, formatCost, formatCount } from "../sessions/amounts.ts";

/** One sum of the server. */
export type AnalyticsRow = AnalyticsView["rows"][number];

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

/** What can be looked at. */
export const METRICS: readonly [Metric, ...Metric[]] = [
  {
    id: "tokens",
    name: "Tokens",
    series: [
      { name: "Input", colour: "var(--accent)", amountOf: ({ usage }) => usage.inputTokens },
      { name: "Output", colour: "var(--tool)", amountOf: ({ usage }) => usage.outputTokens },
    ],
    totalOf: ({ usage }) => usage.totalTokens,
    format: formatCount,
    formatShort: formatCompact,
  },
  single("cost", "Cost", ({ cost }) => cost, formatCost, formatCost),
  single("messages", "Messages", ({ messages }) => messages, formatCount, formatCompact),
  single("tools", "Tool calls", ({ toolCalls }) => toolCalls, formatCount, formatCompact),
  single("sessions", "Sessions", ({ sessions }) => sessions, formatCount, formatCompact),
];

function single(
  id: string,
  name: string,
  totalOf: Metric["totalOf"],
  format: Metric["format"],
  formatShort: Metric["format"],
): Metric {
  return { id, name, series: [{ name, colour: "var(--accent)", amountOf: totalOf }], totalOf, format, formatShort };
}
