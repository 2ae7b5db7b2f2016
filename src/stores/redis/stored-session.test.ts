import { expect, test } from "vitest";
import { nextStamp } from "./stored-session.ts";

test("gives every write to a session a different stamp", () => {
  const names = Array.from({ length: 100 }, () => nextStamp({ uid: "uid", rev: 1, gen: 0 }).text);
  expect(new Set(names).size).toBe(100);
});
