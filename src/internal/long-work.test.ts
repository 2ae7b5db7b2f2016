import { expect, test } from "vitest";
import { asSlice, nextSlice, withLongWork } from "./long-work.ts";

test("slices of several tasks run one after another, and short work runs between them", async () => {
  const done: string[] = [];
  const slices = async (name: string): Promise<void> => {
    for (let i = 0; i < 3; i++) {
      await nextSlice();
      done.push(name);
    }
  };
  void Promise.all([slices("a"), slices("b")]).then(() => done.push("end"));
  while (done.at(-1) !== "end") {
    done.push("short");
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(done.filter((each) => each === "a" || each === "b")).toEqual(["a", "b", "a", "b", "a", "b"]);
  for (const [i, each] of done.entries()) {
    if (each === "a" || each === "b") expect(done.slice(i - 3, i)).toEqual(["short", "short", "short"]);
  }
});

test("the caller of long work can cancel it, also while it waits for a slice", async () => {
  const calls: number[] = [];
  let over = false;
  const work = {
    beforeSlice: (bytes: number) => {
      calls.push(bytes);
      if (over) throw new Error("over");
      return null;
    },
  };
  await withLongWork(work, () => nextSlice(7));
  expect(calls).toEqual([7, 0]);
  const waiting = withLongWork(work, () => nextSlice(8));
  over = true;
  await expect(waiting).rejects.toThrow("over");
  expect(calls).toEqual([7, 0, 8, 0]);
  await nextSlice(9);
  expect(calls).toHaveLength(4);
});

test("of several long tasks the first runs synchronously, and each of the others after short work", async () => {
  // Wait until no slice of an earlier test is pending.
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  const done: string[] = [];
  const long = async (): Promise<void> => {
    const endMs = performance.now() + 6;
    while (performance.now() < endMs);
    done.push("long");
  };
  const all = [asSlice(long), asSlice(long), asSlice(long)];
  expect(done).toEqual(["long"]);
  void Promise.all(all).then(() => done.push("end"));
  while (done.at(-1) !== "end") {
    done.push("short");
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(done.join(" ")).toMatch(/^long( short){3,}( short)* long( short){3,} long/);
});
