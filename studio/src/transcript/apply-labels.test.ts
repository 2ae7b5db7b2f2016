import { expect, test } from "vitest";
import type { Entry } from "../../../src/session/entry.ts";
import { applyLabels } from "./apply-labels.ts";

const label = (targetId: string, text: string | null): Entry => ({ type: "label", targetId, label: text }) as Entry;

test("the last word on a label counts", () => {
  const labels = applyLabels(new Map([["a", "old"]]), [label("a", "new"), label("b", "b"), label("b", null)]);
  expect([...labels]).toEqual([["a", "new"]]);
});

test("nothing changes where no entry is about a label", () => {
  const labels = new Map([["a", "old"]]);
  expect(applyLabels(labels, [{ type: "leaf", targetId: "a" } as Entry])).toBe(labels);
});
