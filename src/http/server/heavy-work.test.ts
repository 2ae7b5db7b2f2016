import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { nextSlice } from "../../internal/long-work.ts";
import { type HeavyRequest, HeavyWork } from "./heavy-work.ts";

const MIB = 1024 * 1024;
const NEVER: AbortSignal = new AbortController().signal;

beforeEach(() => vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
afterEach(() => vi.useRealTimers());

/** A request that has read two mebibytes, and whether it may continue. */
function heavy(work: HeavyWork, user: string, signal: AbortSignal = NEVER) {
  const request = work.open(user, signal);
  const state = { request, user, goesOn: false, refusal: "" };
  const going = request.run(() => nextSlice(2 * MIB));
  going.then(
    () => {
      state.goesOn = true;
    },
    (error: unknown) => {
      state.refusal = (error as { code: string }).code;
    },
  );
  return state;
}

/**
 * Resolves when all requests that may continue have done so. Slices run in the order of the calls, so a later one comes after
 * them, however many slices other tests of this process have left.
 */
async function settled(): Promise<void> {
  for (let slice = 0; slice < 8; slice++) await nextSlice();
}

test("a request that reads little never waits, however many heavy ones run", async () => {
  const work = new HeavyWork({ heavyAtOnce: 1 });
  const first = heavy(work, "ann");
  const second = heavy(work, "bob");
  await settled();
  expect([first.goesOn, second.goesOn]).toEqual([true, false]);
  const light = work.open("bob", NEVER);
  for (let i = 0; i < 8; i++) await light.run(() => nextSlice(MIB / 8));
  expect(light.isHeavy).toBe(false);
});

test("slots are given to waiting users in turn", async () => {
  const work = new HeavyWork({ heavyAtOnce: 1 });
  const holder = heavy(work, "root");
  await settled();
  const waiting = ["ann", "ann", "ann", "bob", "cid"].map((user) => heavy(work, user));
  await settled();
  const order: string[] = [];
  const seen = new Set<HeavyRequest>();
  let last: HeavyRequest = holder.request;
  for (const _ of waiting) {
    last[Symbol.dispose]();
    await settled();
    const next = waiting.filter(({ goesOn }) => goesOn).find(({ request }) => !seen.has(request));
    seen.add((next as typeof holder).request);
    order.push((next as typeof holder).user);
    last = (next as typeof holder).request;
  }
  expect(order).toEqual(["ann", "bob", "cid", "ann", "ann"]);
});

test("a request that waits for half a minute is refused, and so is one above the limit of a user", async () => {
  const work = new HeavyWork({ heavyAtOnce: 1 });
  const holder = heavy(work, "ann");
  await settled();
  const waiting = Array.from({ length: 33 }, () => heavy(work, "bob"));
  await settled();
  expect(waiting.map(({ refusal }) => refusal)).toEqual([...Array<string>(32).fill(""), "TOO_MANY_ANSWERS"]);
  vi.advanceTimersByTime(32_000);
  await settled();
  expect(waiting.slice(0, 32).every(({ refusal }) => refusal === "OVERLOADED")).toBe(true);
  expect(holder.goesOn).toBe(true);
});

test("a request that has had its slot for a minute loses it if others wait, and only then", async () => {
  const work = new HeavyWork({ heavyAtOnce: 1 });
  const holder = heavy(work, "ann");
  await settled();
  let taken = 0;
  holder.request.onTaken = () => {
    taken += 1;
  };
  vi.advanceTimersByTime(90_000);
  await settled();
  expect(taken).toBe(0);
  const other = heavy(work, "bob");
  await settled();
  vi.advanceTimersByTime(2000);
  await settled();
  expect([taken, other.goesOn]).toEqual([1, true]);
  await expect(holder.request.run(() => nextSlice(1))).rejects.toMatchObject({ code: "OVERLOADED" });
});

test("a request whose client has disconnected stops, and releases its slot or its position in the queue", async () => {
  const work = new HeavyWork({ heavyAtOnce: 1 });
  const [left, alsoLeft] = [new AbortController(), new AbortController()];
  const holder = heavy(work, "ann", left.signal);
  await settled();
  const waiting = heavy(work, "bob", alsoLeft.signal);
  const last = heavy(work, "cid");
  await settled();
  alsoLeft.abort();
  left.abort();
  await settled();
  expect([waiting.refusal, last.goesOn]).toEqual(["INVALID_REQUEST", true]);
  await expect(holder.request.run(() => nextSlice(1))).rejects.toMatchObject({ code: "INVALID_REQUEST" });
});

test("background work of a request does not count for it after its answer", async () => {
  const work = new HeavyWork({ heavyAtOnce: 1 });
  heavy(work, "ann");
  await settled();
  const request = work.open("bob", NEVER);
  request.answered();
  await request.run(() => nextSlice(100 * MIB));
  expect(request.isHeavy).toBe(false);
});
