import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { backends } from "../../test/store-backends.ts";
import { assistant, call, usage, user } from "../../test/sample-log.ts";
import { createHeader } from "../session/log/header.ts";
import type { SessionStore } from "../session/store.ts";
import { type AnalyticsTotals, aggregateAnalytics } from "./aggregate-analytics.ts";

const MONDAY = "2024-01-01T10:00:00.000Z";
const TUESDAY = "2024-01-02T10:00:00.000Z";

describe.for(backends.map((backend) => [backend.name, backend] as const))("on %s, analytics", ([, backend]) => {
  let directory: string;
  let store: SessionStore;

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), "analytics-"));
    store = await backend.open(directory);
  });

  afterEach(async () => {
    await store.close();
    await rm(directory, { recursive: true });
  });

  test("add up many sessions overall, by day, by model and by user", async () => {
    await fill(store);
    const { totals, byDay, byModel, byUser } = await aggregateAnalytics(store);
    expect(totals).toEqual({
      sessions: 2,
      totalTurns: 4,
      toolCalls: 2,
      totalTokens: 44,
      totalCost: 1.75,
      usage: usage(22, 22),
    });
    expect(byDay.map((row) => [row.day, ...brief(row)])).toEqual([
      ["2024-01-01", 2, 3, 4, 0.25],
      ["2024-01-02", 1, 1, 40, 1.5],
    ]);
    expect(byModel.map((row) => [row.model, ...brief(row)])).toEqual([
      [null, 2, 2, 0, 0],
      ["acme/one", 1, 1, 4, 0.25],
      ["acme/two", 1, 1, 40, 1.5],
    ]);
    expect(byUser.map((row) => [row.user, ...brief(row)])).toEqual([
      [null, 1, 2, 40, 1.5],
      ["u", 1, 2, 4, 0.25],
    ]);
  });

  test("add up only the sessions and days of the query", async () => {
    await fill(store);
    expect((await aggregateAnalytics(store, { userId: "u" })).totals.totalTurns).toBe(2);
    const tuesday = await aggregateAnalytics(store, { from: "2024-01-02T00:00:00.000Z" });
    expect(tuesday.totals.totalTokens).toBe(40);
    expect(tuesday.byDay.map(({ day }) => day)).toEqual(["2024-01-02"]);
  });

  test("are 0 in an empty store", async () => {
    expect(await aggregateAnalytics(store)).toEqual({
      totals: { sessions: 0, totalTurns: 0, toolCalls: 0, totalTokens: 0, totalCost: 0, usage: usage(0) },
      byDay: [],
      byModel: [],
      byUser: [],
    });
  });

  test("read each session once", async () => {
    await fill(store);
    const read: unknown[] = [];
    const watched = new Proxy(store, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target);
        if (typeof value !== "function") return value;
        return (...given: unknown[]) => {
          if (key !== "list") read.push([key, given[0]]);
          return value.apply(target, given);
        };
      },
    });
    await aggregateAnalytics(watched);
    expect(read.sort()).toEqual([
      ["read", "a"],
      ["read", "b"],
    ]);
  });

  test.for([{ from: "yesterday" }, { groupBy: ["week"], more: 1 }, { status: "gone" }])(
    "refuse the query %j",
    async (query) => {
      await expect(aggregateAnalytics(store, query as never)).rejects.toMatchObject({ code: "INVALID_QUERY" });
    },
  );
});

async function fill(store: SessionStore): Promise<void> {
  await store.create(createHeader({ id: "a", userId: "u" }));
  await store.append("a", [
    { type: "message", message: user("q"), timestamp: MONDAY },
    {
      type: "message",
      message: assistant("a", {
        provider: "acme",
        model: "one",
        usage: usage(2, 2),
        cost: 0.25,
        toolCalls: [call("c"), call("d")],
      }),
      timestamp: MONDAY,
    },
  ]);
  await store.create(createHeader({ id: "b" }));
  await store.append("b", [
    { type: "message", message: user("q"), timestamp: MONDAY },
    {
      type: "message",
      message: assistant("a", { provider: "acme", model: "two", usage: usage(20, 20), cost: 1.5 }),
      timestamp: TUESDAY,
    },
  ]);
}

function brief({ sessions, totalTurns, totalTokens, totalCost }: AnalyticsTotals): number[] {
  return [sessions, totalTurns, totalTokens, totalCost];
}
