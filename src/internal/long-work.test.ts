import { expect, test } from "vitest";
import { asSlice, nextSlice, withLongWork } from "./long-work.ts";

test("of several that wait, one slice is done after the other, and short work has its turn between two", async () => {
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

test("whoever has it done can make it wait, and end it, also when it waits for its slice", async () => {
  const asked: number[] = [];
  let over = false;
  const work = {
    goOn: (bytes: number) => {
      asked.push(bytes);
      if (over) throw new Error("over");
      return null;
    },
  };
  await withLongWork(work, () => nextSlice(7));
  expect(asked).toEqual([7, 0]);
  const waiting = withLongWork(work, () => nextSlice(8));
  over = true;
  await expect(waiting).rejects.toThrow("over");
  expect(asked).toEqual([7, 0, 8, 0]);
  await nextSlice(9);
  expect(asked).toHaveLength(4);
});

test("of many that come at once and take long, the first is done at once and each other one after short work", async () => {
  // Until nothing of before is under way.
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
