import { expect, test } from "vitest";
import { entryAt } from "../../../test/sample-log.ts";
import { erasedEntry } from "./erased-entry.ts";

test("the erased end of a run says that it ended, and not the value that it gave or why it failed", () => {
  const end = { type: "run", runId: "r", phase: "finished" } as const;
  const told = entryAt(3, "e", null, { ...end, output: { name: "Ada" }, error: "Ada" });
  expect(erasedEntry(told)).toEqual(entryAt(3, "e", null, end));
});
