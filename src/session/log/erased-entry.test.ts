import { expect, test } from "vitest";
import { entryAt } from "../../../test/sample-log.ts";
import { erasedEntry } from "./erased-entry.ts";

test("the erased end of a run records that it ended, but neither its output nor its error", () => {
  const end = { type: "run", runId: "r", phase: "finished" } as const;
  const told = entryAt(3, "e", null, { ...end, output: { name: "Ada" }, error: "Ada" });
  expect(erasedEntry(told)).toEqual(entryAt(3, "e", null, end));
});
