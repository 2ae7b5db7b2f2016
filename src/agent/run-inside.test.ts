import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { isInside, runInside } from "./run-inside.ts";

const run = { name: "a run" };
const other = { name: "another" };

/** Each test uses a separate function, because its behaviour is remembered. */
function newCode(): object {
  return {};
}

test("detects code that a run waits for, also if it always returns synchronously", () => {
  const code = newCode();
  for (let times = 0; times < 3; times++) expect(runInside(run, () => isInside(run), code)).toBe(true);
  expect(isInside(run)).toBe(false);
  expect(runInside(run, () => isInside(other), code)).toBe(false);
});

test("follows code across await, until it has returned", async () => {
  const seen: boolean[] = [];
  let left: Promise<void> = Promise.resolve();
  const work = async (): Promise<void> => {
    await nextTurn();
    seen.push(isInside(run));
    left = nextTurn().then(() => nextTurn().then(() => void seen.push(isInside(run))));
  };
  await runInside(run, work);
  await left;
  // While code of another run is followed, code that was left running is followed, too.
  let end = (): void => {};
  const following = runInside(other, () => new Promise<void>((resolve) => (end = resolve)));
  await runInside(run, work);
  await left;
  end();
  await following;
  expect(seen).toEqual([true, false, true, false]);
});

test("follows a function again from its second asynchronous call on, after it was synchronous", async () => {
  const code = newCode();
  const late = async (): Promise<boolean> => {
    expect(isInside(run)).toBe(true);
    await nextTurn();
    return isInside(run);
  };
  runInside(run, () => "at once", code);
  await runInside(run, late, code);
  expect(await runInside(run, late, code)).toBe(true);
});

test("detects all nested runs that wait for the code", async () => {
  const inner = async (): Promise<readonly boolean[]> => {
    await nextTurn();
    return [isInside(run), isInside(other)];
  };
  const outer = async (): Promise<readonly boolean[]> => {
    await nextTurn();
    return runInside(other, inner);
  };
  expect(await runInside(run, outer)).toEqual([true, true]);
  const code = newCode();
  for (let times = 0; times < 2; times++) {
    expect(runInside(run, () => runInside(other, () => [isInside(run), isInside(other)], code), code)).toEqual([
      true,
      true,
    ]);
  }
});

test("keeps concurrent code apart, also when one ends before the other", async () => {
  const work = async (turns: number): Promise<readonly boolean[]> => {
    for (let turn = 0; turn < turns; turn++) await nextTurn();
    return [isInside(run), isInside(other)];
  };
  const [short, long] = await Promise.all([runInside(run, () => work(1)), runInside(other, () => work(5))]);
  expect({ short, long }).toEqual({ short: [true, false], long: [false, true] });
});

test("passes on errors, synchronous or not, and restores the state", async () => {
  const code = newCode();
  const fail = (): never => {
    throw new Error("It failed.");
  };
  for (let times = 0; times < 2; times++) expect(() => runInside(run, fail, code)).toThrow("It failed.");
  runInside(run, () => "at once", code);
  expect(() => runInside(run, fail, code)).toThrow("It failed.");
  await expect(runInside(run, async () => fail())).rejects.toThrow("It failed.");
  expect(isInside(run)).toBe(false);
});
