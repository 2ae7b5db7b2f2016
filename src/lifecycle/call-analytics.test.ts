import { afterEach, beforeEach, expect, test } from "vitest";
import { assistant, call, user } from "../../test/sample-log.ts";
import type { EntryDraft } from "../session/log/entry.ts";
import { createHeader } from "../session/log/header.ts";
import type { Message } from "../session/message.ts";
import type { SessionStore } from "../session/store.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { callAnalytics } from "./call-analytics.ts";

const MONDAY_MS = Date.UTC(2024, 0, 1, 10);
const DAY_MS = 24 * 60 * 60 * 1000;

let store: SessionStore;

beforeEach(async () => {
  store = await openMemoryStore();
});

afterEach(() => store.close());

const timeOf = (ms: number): string => new Date(ms).toISOString();
const said = (ms: number, message: Message, id?: string): EntryDraft => ({
  type: "message",
  message,
  timestamp: timeOf(ms),
  ...(id === undefined ? {} : { id }),
});
const run = (ms: number, phase: "started" | "finished"): EntryDraft => ({
  type: "run",
  runId: "a-run",
  phase,
  timestamp: timeOf(ms),
});
const model = { provider: "acme", model: "one" } as const;

async function session(id: string, userId: string | null, drafts: readonly EntryDraft[], createdMs = MONDAY_MS) {
  await store.create(createHeader({ id, createdAt: timeOf(createdMs), userId }));
  await store.append(id, drafts);
}

/** A run with one answer of a given latency. */
const answered = (atMs: number, tookMs: number): readonly EntryDraft[] => [
  said(atMs, user("Hello")),
  run(atMs, "started"),
  said(atMs + tookMs, assistant("Hello", model)),
  run(atMs + tookMs, "finished"),
];

test("measures the latency of answers, overall and by day, by model and by user", async () => {
  for (let took = 1; took <= 20; took++) await session(`s${took}`, "ann", answered(MONDAY_MS, took * 100));
  await session("tuesday", null, answered(MONDAY_MS + DAY_MS, 7000));
  expect(await callAnalytics(store)).toEqual({
    sessions: 21,
    complete: true,
    latency: { answers: 21, medianMs: 1100, p95Ms: 2000 },
    byDay: [
      { day: "2024-01-01", answers: 20, medianMs: 1000, p95Ms: 1900 },
      { day: "2024-01-02", answers: 1, medianMs: 7000, p95Ms: 7000 },
    ],
    byModel: [{ model: "acme/one", answers: 21, medianMs: 1100, p95Ms: 2000 }],
    byUser: [
      { user: null, answers: 1, medianMs: 7000, p95Ms: 7000 },
      { user: "ann", answers: 20, medianMs: 1000, p95Ms: 1900 },
    ],
    tools: [],
  });
});

test("measures from the message that is answered or from the start of the run, and only complete answers of runs", async () => {
  await session("s", null, [
    said(MONDAY_MS, user("Asked long before.")),
    said(MONDAY_MS + 1000, assistant("Written by a caller.", model)),
    run(MONDAY_MS + 60_000, "started"),
    said(MONDAY_MS + 60_300, assistant(null, { ...model, toolCalls: [call("c1", "look"), call("c2", "fetch")] })),
    said(MONDAY_MS + 65_000, { role: "tool", toolCallId: "c1", name: "look", content: "done" }),
    said(MONDAY_MS + 65_000, { role: "tool", toolCallId: "c2", name: "fetch", content: "no", isError: true }),
    said(MONDAY_MS + 65_900, assistant("Done.", model)),
    said(MONDAY_MS + 66_000, user("More?")),
    said(MONDAY_MS + 99_000, assistant("I was", { ...model, stopReason: "aborted" })),
    run(MONDAY_MS + 99_000, "finished"),
    said(MONDAY_MS + 99_500, assistant("Written by a caller.", model)),
  ]);
  const { latency, tools } = await callAnalytics(store);
  expect(latency).toEqual({ answers: 2, medianMs: 300, p95Ms: 900 });
  expect(tools).toEqual([
    { tool: "fetch", calls: 1, failed: 1 },
    { tool: "look", calls: 1, failed: 0 },
  ]);
});

test("measures only the user and the time of the query, and counts inherited turns once", async () => {
  await session("early", "ann", answered(MONDAY_MS, 100));
  await session("late", "ann", answered(MONDAY_MS + 2 * DAY_MS, 200), MONDAY_MS + 2 * DAY_MS);
  await session("other", "ben", answered(MONDAY_MS, 300));
  await store.fork("early", createHeader({ id: "fork", createdAt: timeOf(MONDAY_MS), userId: "ann" }));
  const of = async (query: Parameters<typeof callAnalytics>[1]): Promise<unknown> =>
    (await callAnalytics(store, query)).latency;
  expect(await of({ userId: "ann" })).toEqual({ answers: 2, medianMs: 100, p95Ms: 200 });
  expect(await of({ from: timeOf(MONDAY_MS + DAY_MS) })).toEqual({ answers: 1, medianMs: 200, p95Ms: 200 });
  expect(await of({ to: timeOf(MONDAY_MS + DAY_MS) })).toEqual({ answers: 2, medianMs: 100, p95Ms: 300 });
  expect(await of({ userId: "nobody" })).toBe(null);
  await expect(callAnalytics(store, { from: "yesterday" })).rejects.toMatchObject({ code: "INVALID_QUERY" });
});

test("reads the end of a very long session, and reports that the result is incomplete", async () => {
  const rounds = Array.from({ length: 1500 }, (_, index) => answered(MONDAY_MS + index * 10_000, index < 700 ? 1 : 50));
  await session("long", null, rounds.flat());
  const { sessions, complete, latency } = await callAnalytics(store);
  expect({ sessions, complete }).toEqual({ sessions: 1, complete: false });
  expect(latency).toEqual({ answers: 1000, medianMs: 50, p95Ms: 50 });
});
