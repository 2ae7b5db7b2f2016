import type { AnalyticsRowView } from "skein/client";
import { daysOf, type Period } from "../analytics/period.ts";
import { formatCompact, formatCost } from "../sessions/list/amounts.ts";

/** The period of the first page. */
export const WEEK: Period = { kind: "last", days: 7 };

/** The sums of the last seven days. */
export interface Week {
  /** A dash if nothing is known. */
  readonly cost: string;
  /** A sentence about imported work, which no other figure includes; null without any. */
  readonly imported: string | null;
  readonly tokens: number;
  readonly messages: number;
  readonly toolCalls: number;
  readonly days: readonly { readonly day: string; readonly tokens: number }[];
}

/** The sums of the rows of each day. */
export function weekOf(rows: readonly AnalyticsRowView[], nowMs: number): Week {
  const sum = (amount: (row: AnalyticsRowView) => number): number =>
    rows.reduce((total, row) => total + amount(row), 0);
  const byDay = new Map(rows.map((row) => [row.day, row.usage.totalTokens]));
  return {
    cost: formatCost(sum(({ cost }) => cost)),
    imported: importedIn(rows),
    tokens: sum(({ usage }) => usage.totalTokens),
    messages: sum(({ messages }) => messages),
    toolCalls: sum(({ toolCalls }) => toolCalls),
    days: daysOf(WEEK, [], nowMs).map((day) => ({ day, tokens: byDay.get(day) ?? 0 })),
  };
}

function importedIn(rows: readonly AnalyticsRowView[]): string | null {
  const found = rows.flatMap(({ imported }) => imported ?? []);
  if (found.length === 0) return null;
  const tokens = found.reduce((total, { usage }) => total + usage.totalTokens, 0);
  const messages = found.reduce((total, each) => total + each.messages, 0);
  const cost = found.reduce((total, each) => total + (each.cost ?? 0), 0);
  const costComputed = found.some((each) => each.costComputed);
  return [
    `${formatCompact(messages)} messages`,
    `${formatCompact(tokens)} tokens`,
    ...(cost === 0 ? [] : [formatCost(cost, costComputed)]),
  ].join(", ");
}
