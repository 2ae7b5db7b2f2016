import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { SessionHead } from "../session/log/fold.ts";
import { createHeader } from "../session/log/header.ts";
import type { SessionStore } from "../session/store.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import { Expiry } from "./expiry.ts";
import type { FailureContext } from "./report-failure.ts";
import { Sweeper } from "./sweeper.ts";

let now: number;
let store: SessionStore;
const clock = (): Date => new Date(now);
beforeEach(() => {
  now = Date.UTC(2030, 0, 1);
  store = openMemoryStore({ clock });
});
afterEach(() => {
  vi.useRealTimers();
});

interface Setup {
  readonly sweeper: Sweeper;
  readonly expiry: Expiry;
  readonly expired: string[];
  readonly failures: FailureContext[];
}

/** A sweeper with an expiry of a minute, on a store that fails for some sessions. */
function setup(on: SessionStore = store): Setup {
  const expired: string[] = [];
  const failures: FailureContext[] = [];
  const recorded = ({ header }: { header: { id: string } }): void => void expired.push(header.id);
  const expiry = new Expiry({ store: on, ttlSeconds: 60, clock, recorded });
  const report = (_error: unknown, context: FailureContext): void => void failures.push(context);
  return { sweeper: new Sweeper({ store: on, expiry, report, intervalSeconds: 600 }), expiry, expired, failures };
}

async function make(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, i) => `s${String(i).padStart(3, "0")}`);
  for (const id of ids) await store.create(createHeader({ id }));
  return ids;
}

/** A store in which appends to some sessions fail as on a broken disk. */
function failingFor(fails: (id: string) => boolean): SessionStore {
  return new Proxy(store, {
    get(target, key) {
      if (key === "append") {
        return async (...args: Parameters<SessionStore["append"]>) => {
          if (fails(args[0])) throw new Error("disk");
          return target.append(...args);
        };
      }
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("expires sessions after sessionTtl, by the time of the last append, and not earlier", async () => {
  await make(2);
  const { sweeper, expiry, expired } = setup();
  const isDue = async (id: string) => expiry.isDue((await store.head(id)) as SessionHead);
  now += 30_000;
  await store.append("s001", [{ type: "session_info", name: "busy" }]);
  now += 30_000;
  expect([await isDue("s000"), await sweeper.sweep()]).toEqual([false, 0]);
  now += 1;
  expect([await isDue("s000"), await isDue("s001")]).toEqual([true, false]);
  expect(await sweeper.sweep()).toBe(1);
  expect(expired).toEqual(["s000"]);
  now += 30_000;
  expect(await sweeper.sweep()).toBe(1);
  expect(expired).toEqual(["s000", "s001"]);
});

test("expires more sessions than one batch has", async () => {
  const ids = await make(250);
  now += 61_000;
  const { sweeper, expired } = setup();
  expect(await sweeper.sweep({ limit: 201 })).toBe(201);
  expect(await sweeper.sweep()).toBe(49);
  expect(expired.sort()).toEqual(ids);
});

test("reports the sessions that it cannot expire, and continues with all others", async () => {
  const ids = await make(260);
  now += 61_000;
  const isBad = (id: string): boolean => id < "s150" || id === "s200";
  const { sweeper, expired, failures } = setup(failingFor(isBad));
  expect(await sweeper.sweep()).toBe(109);
  expect(expired.sort()).toEqual(ids.filter((id) => !isBad(id)));
  expect(failures).toHaveLength(151);
  expect(failures[0]).toEqual({ during: "sweep", sessionId: "s000" });
});

describe("the timer", () => {
  test("sweeps once in each interval until it is stopped", async () => {
    vi.useFakeTimers();
    await make(1);
    const { sweeper, expired } = setup();
    sweeper.start();
    sweeper.start();
    expect(vi.getTimerCount()).toBe(1);
    await vi.advanceTimersByTimeAsync(600_000);
    expect(expired).toEqual([]);
    now += 61_000;
    await vi.advanceTimersByTimeAsync(600_000);
    expect(expired).toEqual(["s000"]);
    await sweeper.stop();
    expect(vi.getTimerCount()).toBe(0);
    await store.create(createHeader({ id: "later" }));
    now += 61_000;
    await vi.advanceTimersByTimeAsync(6_000_000);
    expect(expired).toEqual(["s000"]);
  });

  test("does not start a pass while another is running, and stop waits for it", async () => {
    vi.useFakeTimers();
    await make(1);
    now += 61_000;
    let asked = 0;
    let go = (): void => {};
    const slow = new Proxy(store, {
      get(target, key) {
        const value: unknown = Reflect.get(target, key, target);
        if (key !== "listExpired") return typeof value === "function" ? value.bind(target) : value;
        return async (...args: Parameters<SessionStore["listExpired"]>) => {
          asked += 1;
          await new Promise<void>((resolve) => {
            go = resolve;
          });
          return target.listExpired(...args);
        };
      },
    });
    const { sweeper } = setup(slow);
    sweeper.start();
    await vi.advanceTimersByTimeAsync(3_000_000);
    expect(asked).toBe(1);
    let stopped = false;
    const stopping = sweeper.stop().then(() => {
      stopped = true;
    });
    await vi.advanceTimersByTimeAsync(1);
    expect(stopped).toBe(false);
    go();
    await vi.advanceTimersByTimeAsync(1);
    go();
    await stopping;
  });

  test("reports an unavailable store, and tries again", async () => {
    vi.useFakeTimers();
    const { sweeper, failures } = setup();
    await store.close();
    sweeper.start();
    await vi.advanceTimersByTimeAsync(1_200_000);
    expect(failures).toEqual([
      { during: "sweep", sessionId: null },
      { during: "sweep", sessionId: null },
    ]);
    await sweeper.stop();
  });
});
