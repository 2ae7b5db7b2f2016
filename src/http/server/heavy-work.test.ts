import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { nextSlice } from "../../internal/long-work.ts";
import { type HeavyRequest, HeavyWork } from "./heavy-work.ts";

const MIB = 1024 * 1024;
const NEVER: AbortSignal = new AbortController().signal;

beforeEach(() => vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] }));
afterEach(() => vi.useRealTimers());

/** A request that has read two mebibytes, and whether it may go on. */
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
 * Resolves when whatever may go on has done so. Slices are done in the order in which they were asked for, so one that is
 * asked for later comes after them, however many slices the other tests of this process have left.
 */
async function settled(): Promise<void> {
  for (let slice = 0; slice < 8; slice++) await nextSlice();
}

test("what reads little never waits, however much is under way", async () => {
  const work = new HeavyWork({ heavyAtOnce: 1 });
  const first = heavy(work, "ann");
  const second = heavy(work, "bob");
  await settled();
  expect([first.goesOn, second.goesOn]).toEqual([true, false]);
  const light = work.open("bob", NEVER);
  for (let i = 0; i < 8; i++) await light.run(() => nextSlice(MIB / 8));
  expect(light.isHeavy).toBe(false);
});

test("slots go round among the users who wait", async () => {
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

test("a request that waits for half a minute is refused, and so is one too many of a user", async () => {
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

test("one that has had its slot for a minute loses it to others that wait, and to nobody else", async () => {
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

test("a request whose client is gone stops, and leaves its slot or its place to others", async () => {
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

test("what a request has set going beside its answer is not its own any more", async () => {
  const work = new HeavyWork({ heavyAtOnce: 1 });
  heavy(work, "ann");
  await settled();
  const request = work.open("bob", NEVER);
  request.answered();
  await request.run(() => nextSlice(100 * MIB));
  expect(request.isHeavy).toBe(false);
});
