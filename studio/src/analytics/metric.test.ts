import { expect, test } from "vitest";
import { type AnalyticsRow, METRICS, withLatency } from "./metric.ts";

const row = (key: Partial<AnalyticsRow>): AnalyticsRow => ({
  sessions: 1,
  messages: 2,
  toolCalls: 0,
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  cost: 0,
  ...key,
});
const latency = { answers: 3, medianMs: 200, p95Ms: 900 };

test("gives each row the latency of its day or user, and none to a row without a measurement", () => {
  const days = withLatency([row({ day: "2024-01-01" }), row({ day: "2024-01-02" })], "day", [
    { day: "2024-01-02", ...latency },
  ]);
  expect(days.map((each) => each.latency?.medianMs)).toEqual([undefined, 200]);
  const users = withLatency([row({ user: null }), row({ user: "ann" })], "user", [{ user: null, ...latency }]);
  expect(users.map((each) => each.latency?.medianMs)).toEqual([200, undefined]);
});

test("draws a latency bar up to the 95th percentile, with the median in it", () => {
  const metric = METRICS.find(({ id }) => id === "latency");
  const measured = { ...row({}), latency };
  expect(metric?.series.map(({ amountOf }) => amountOf(measured))).toEqual([200, 700]);
  expect(metric?.totalOf(row({}))).toBe(0);
});

test("the token parts add up to the sum, also for an answer with a sum only", () => {
  const tokens = METRICS.find(({ id }) => id === "tokens");
  for (const usage of [
    { inputTokens: 3, outputTokens: 4, totalTokens: 7 },
    { inputTokens: 3, outputTokens: 4, totalTokens: 250 },
  ]) {
    const parts = tokens?.series.map(({ amountOf }) => amountOf(row({ usage }))) ?? [];
    expect(parts.reduce((sum, part) => sum + part, 0)).toBe(usage.totalTokens);
  }
});
