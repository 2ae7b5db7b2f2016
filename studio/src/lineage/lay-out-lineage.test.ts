import type { LineageNodeView } from "skein/client";
import { expect, test } from "vitest";
import { layOutLineage, NODE_HEIGHT, NODE_WIDTH, type Place } from "./lay-out-lineage.ts";

function graph(ids: string, ...arrows: string[]): Parameters<typeof layOutLineage>[0] {
  const nodes = [...ids].map((id) => ({ id }) as LineageNodeView);
  const edges = arrows.map((arrow) => ({ parent: arrow.charAt(0), child: arrow.charAt(1) }));
  return { nodes, edges };
}

const at = (places: ReadonlyMap<string, Place>, id: string): Place => places.get(id) as Place;

test("puts every session below all of its parents", () => {
  const lineage = graph("dcba", "ab", "bc", "ad", "cd");
  const { places } = layOutLineage(lineage);
  for (const { parent, child } of lineage.edges) {
    expect(at(places, child).y).toBeGreaterThanOrEqual(at(places, parent).y + NODE_HEIGHT);
  }
});

test("lets no two sessions overlap, and none be left of the picture", () => {
  const places = [...layOutLineage(graph("abcdefg", "ab", "ac", "ad", "be", "ce", "df", "dg")).places.values()];
  for (const [index, place] of places.entries()) {
    expect(place.x).toBeGreaterThanOrEqual(0);
    for (const other of places.slice(index + 1)) {
      expect(other.y !== place.y || Math.abs(other.x - place.x) >= NODE_WIDTH).toBe(true);
    }
  }
});

test("puts a session in the middle above what came from it", () => {
  const { places } = layOutLineage(graph("abc", "ab", "ac"));
  expect(at(places, "a").x).toBeCloseTo((at(places, "b").x + at(places, "c").x) / 2, 0);
});

test("leads an arrow past the sessions that stand between its ends", () => {
  const { places, bends } = layOutLineage(graph("abc", "ab", "bc", "ac"));
  const [bend] = bends.get("a c") ?? [];
  expect(bend?.y).toBe(at(places, "b").y);
  const b = at(places, "b").x;
  expect((bend?.x ?? 0) < b || (bend?.x ?? 0) > b + NODE_WIDTH).toBe(true);
  expect(bends.get("a b")).toBeUndefined();
});

test("places what is in a cycle too, and knows an empty lineage", () => {
  expect(layOutLineage(graph("ab", "ab", "ba")).places.size).toBe(2);
  expect(layOutLineage(graph("")).places.size).toBe(0);
});

test("takes little time for two thousand sessions", () => {
  const nodes = Array.from({ length: 2000 }, (_, index) => ({ id: `${index}` }) as LineageNodeView);
  const edges = nodes.slice(1).map(({ id }, index) => ({ parent: `${Math.floor(index / 3)}`, child: id }));
  const begin = performance.now();
  expect(layOutLineage({ nodes, edges }).places.size).toBe(2000);
  expect(performance.now() - begin).toBeLessThan(1000);
});

test("takes little time for a long chain whose sessions all come from the first one too", () => {
  const nodes = Array.from({ length: 1000 }, (_, index) => ({ id: `${index}` }) as LineageNodeView);
  const edges = nodes.slice(1).flatMap(({ id }, index) => [
    { parent: `${index}`, child: id },
    { parent: "0", child: id },
  ]);
  const begin = performance.now();
  expect(layOutLineage({ nodes, edges }).places.size).toBe(1000);
  expect(performance.now() - begin).toBeLessThan(1000);
});
