import { expect, test } from "vitest";
import type { MaybePromise } from "../../session/store-driver.ts";
import { type Coroutine, runAsync, runSync, waitFor } from "./coroutine.ts";

function* sum(first: MaybePromise<number>, second: () => MaybePromise<number>): Coroutine<number> {
  const one = yield* waitFor(first);
  return one + (yield* waitFor(second()));
}

function* orElse(reply: MaybePromise<string>, other: string): Coroutine<string> {
  try {
    return yield* waitFor(reply);
  } catch {
    return other;
  }
}

test("runSync returns the result when no value is a promise", () => {
  expect(runSync(sum(1, () => 2))).toBe(3);
});

test("runAsync has done all the work before it returns when no value is a promise", () => {
  let called = false;
  const running = runAsync(
    sum(1, () => {
      called = true;
      return 2;
    }),
  );
  expect(called).toBe(true);
  return expect(running).resolves.toBe(3);
});

test("runAsync waits for each promise before it makes the next call", async () => {
  const order: string[] = [];
  const first = Promise.resolve(1).then((value) => {
    order.push("first");
    return value;
  });
  const total = await runAsync(
    sum(first, () => {
      order.push("second");
      return Promise.resolve(2);
    }),
  );
  expect([total, order]).toEqual([3, ["first", "second"]]);
});

test("a rejected promise throws inside the coroutine, which can catch it and go on", async () => {
  expect(await runAsync(orElse(Promise.reject(new Error("away")), "another"))).toBe("another");
  await expect(runAsync(sum(Promise.reject(new Error("away")), () => 2))).rejects.toThrow("away");
});

test("runSync throws if a synchronous store returns a promise", () => {
  expect(() => runSync(sum(Promise.resolve(1), () => 2))).toThrow("returned a promise");
});
