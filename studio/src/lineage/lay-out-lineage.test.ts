import type { LineageNodeView } from "skein/client";
import { expect, test } from "vitest";
import { layOutLineage, NODE_HEIGHT, NODE_WIDTH, type Point } from "./lay-out-lineage.ts";

function graph(ids: string, ...arrows: string[]): Parameters<typeof layOutLineage>[0] {
  const nodes = [...ids].map((id) => ({ id }) as LineageNodeView);
  const edges = arrows.map((arrow) => ({ parent: arrow.charAt(0), child: arrow.charAt(1) }));
  return { nodes, edges };
}

const at = (points: ReadonlyMap<string, Point>, id: string): Point => points.get(id) as Point;

test("places every session below all of its parents", () => {
  const lineage = graph("dcba", "ab", "bc", "ad", "cd");
  const { points } = layOutLineage(lineage);
  for (const { parent, child } of lineage.edges) {
    expect(at(points, child).y).toBeGreaterThanOrEqual(at(points, parent).y + NODE_HEIGHT);
  }
});

test("no two sessions overlap, and none has a negative x", () => {
  const points = [...layOutLineage(graph("abcdefg", "ab", "ac", "ad", "be", "ce", "df", "dg")).points.values()];
  for (const [index, point] of points.entries()) {
    expect(point.x).toBeGreaterThanOrEqual(0);
    for (const other of points.slice(index + 1)) {
      expect(other.y !== point.y || Math.abs(other.x - point.x) >= NODE_WIDTH).toBe(true);
    }
  }
});

test("centers a session above its children", () => {
  const { points } = layOutLineage(graph("abc", "ab", "ac"));
  expect(at(points, "a").x).toBeCloseTo((at(points, "b").x + at(points, "c").x) / 2, 0);
});

test("leads an edge around the sessions between its ends", () => {
  const { points, bends } = layOutLineage(graph("abc", "ab", "bc", "ac"));
  const [bend] = bends.get("a c") ?? [];
  expect(bend?.y).toBe(at(points, "b").y);
  const b = at(points, "b").x;
  expect((bend?.x ?? 0) < b || (bend?.x ?? 0) > b + NODE_WIDTH).toBe(true);
  expect(bends.get("a b")).toBeUndefined();
});

test("lays out cycles and an empty lineage", () => {
  expect(layOutLineage(graph("ab", "ab", "ba")).points.size).toBe(2);
  expect(layOutLineage(graph("")).points.size).toBe(0);
});

test("is fast for two thousand sessions", () => {
  const nodes = Array.from({ length: 2000 }, (_, index) => ({ id: `${index}` }) as LineageNodeView);
  const edges = nodes.slice(1).map(({ id }, index) => ({ parent: `${Math.floor(index / 3)}`, child: id }));
  const begin = performance.now();
  expect(layOutLineage({ nodes, edges }).points.size).toBe(2000);
  expect(performance.now() - begin).toBeLessThan(1000);
});

test("is fast for a long chain whose sessions all have the first one as a parent, too", () => {
  const nodes = Array.from({ length: 1000 }, (_, index) => ({ id: `${index}` }) as LineageNodeView);
  const edges = nodes.slice(1).flatMap(({ id }, index) => [
    { parent: `${index}`, child: id },
    { parent: "0", child: id },
  ]);
  const begin = performance.now();
  expect(layOutLineage({ nodes, edges }).points.size).toBe(1000);
  expect(performance.now() - begin).toBeLessThan(1000);
});
