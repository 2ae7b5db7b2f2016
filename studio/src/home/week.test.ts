import { expect, test } from "vitest";
import type { AnalyticsRowView } from "skein/client";
import { weekOf } from "./week.ts";

const NOW = Date.parse("2026-03-08T12:00:00.000Z");
const usage = (totalTokens: number) => ({ inputTokens: totalTokens, outputTokens: 0, totalTokens });

function rowOf(day: string, more: Partial<AnalyticsRowView> = {}): AnalyticsRowView {
  return { day, sessions: 1, messages: 2, toolCalls: 0, usage: usage(1000), cost: 0, ...more } as AnalyticsRowView;
}

test("sums the week by day, with a dash for a cost that nobody knows", () => {
  const week = weekOf([rowOf("2026-03-07"), rowOf("2026-03-08")], NOW);
  expect(week).toMatchObject({ cost: "–", tokens: 2000, messages: 4, imported: null });
  expect(week.days.map(({ tokens }) => tokens)).toEqual([0, 0, 0, 0, 0, 1000, 1000]);
  expect(weekOf([rowOf("2026-03-08", { cost: 1.5 })], NOW).cost).toBe("$1.50");
});

test("reports imported work apart, with a computed cost marked", () => {
  const imported = { messages: 40, toolCalls: 3, usage: usage(12_000), cost: 0.25, costComputed: true };
  const unknown = { ...imported, cost: null, costComputed: false };
  const rows = [rowOf("2026-03-07", { imported }), rowOf("2026-03-08", { imported: unknown })];
  expect(weekOf(rows, NOW)).toMatchObject({ tokens: 2000, imported: "80 messages, 24K tokens, ~$0.25" });
  expect(weekOf(rows.slice(1), NOW).imported).toBe("40 messages, 12K tokens");
});
