import { expect, test } from "vitest";
import { type Asking, ask, type Reply, runLater, runNow } from "./asking.ts";

function* sum(first: Reply<number>, second: () => Reply<number>): Asking<number> {
  const one = yield* ask(first);
  return one + (yield* ask(second()));
}

function* orElse(reply: Reply<string>, other: string): Asking<string> {
  try {
    return yield* ask(reply);
  } catch {
    return other;
  }
}

test("goes on at once with what is answered at once", () => {
  expect(runNow(sum(1, () => 2))).toBe(3);
});

test("is done when the call returns, where every answer comes at once", () => {
  let asked = false;
  const running = runLater(
    sum(1, () => {
      asked = true;
      return 2;
    }),
  );
  expect(asked).toBe(true);
  return expect(running).resolves.toBe(3);
});

test("waits for answers that come later, each before the next is asked", async () => {
  const asked: string[] = [];
  const first = Promise.resolve(1).then((value) => {
    asked.push("first");
    return value;
  });
  const total = await runLater(
    sum(first, () => {
      asked.push("second");
      return Promise.resolve(2);
    }),
  );
  expect([total, asked]).toEqual([3, ["first", "second"]]);
});

test("throws what an answer fails with where it was asked, so that the steps can go on", async () => {
  expect(await runLater(orElse(Promise.reject(new Error("away")), "another"))).toBe("another");
  await expect(runLater(sum(Promise.reject(new Error("away")), () => 2))).rejects.toThrow("away");
});

test("refuses an answer that comes later from a store that answers at once", () => {
  expect(() => runNow(sum(Promise.resolve(1), () => 2))).toThrow("answered later");
});
