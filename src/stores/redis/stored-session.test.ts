import { expect, test } from "vitest";
import { nextStamp } from "./stored-session.ts";

test("never names two writes to a session alike", () => {
  const names = Array.from({ length: 100 }, () => nextStamp({ uid: "uid", rev: 1, gen: 0 }).text);
  expect(new Set(names).size).toBe(100);
});
