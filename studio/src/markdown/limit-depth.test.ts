import { expect, test } from "vitest";
import { DEPTH_MAX, limitDepth } from "./limit-depth.ts";

test("throws for a tree that is deeper than the limit only", () => {
  const deep = (levels: number): { type: string; children: never[] } =>
    ({ type: "blockquote", children: levels === 0 ? [] : [deep(levels - 1)] }) as never;
  expect(() => limitDepth()(deep(DEPTH_MAX - 1))).not.toThrow();
  expect(() => limitDepth()(deep(DEPTH_MAX + 1))).toThrow("too deep");
});
