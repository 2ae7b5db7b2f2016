import type { LineageView } from "skein/client";

/** Where a session stands in the picture, by its upper left corner. */
export interface Place {
  readonly x: number;
  readonly y: number;
}

/** The size of one session in the picture, in pixels. */
export const NODE_WIDTH = 208;
/** The height that goes with it. */
export const NODE_HEIGHT = 92;
const GAP_X = 32;
const GAP_Y = 72;
/** How often the sessions are moved to where their parents and children are; more changes nothing that one sees. */
const SWEEPS = 4;

/** Places every session below all of its parents, and as near to them as there is room. */
export function layOutLineage({ nodes, edges }: Pick<LineageView, "nodes" | "edges">): ReadonlyMap<string, Place> {
  const ids = nodes.map(({ id }) => id);
  const parents = group(ids, edges, "child", "parent");
  const children = group(ids, edges, "parent", "child");
  const layers = layersOf(ids, parents, children);
  const x = new Map<string, number>();
  for (const layer of layers) for (const [index, id] of layer.entries()) x.set(id, index * (NODE_WIDTH + GAP_X));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (const layer of layers) settle(layer, parents, x);
    for (const layer of layers.toReversed()) settle(layer, children, x);
  }
  const left = Math.min(0, ...x.values());
  const places = new Map<string, Place>();
  for (const [depth, layer] of layers.entries()) {
    const y = depth * (NODE_HEIGHT + GAP_Y);
    for (const id of layer) places.set(id, { x: Math.round((x.get(id) ?? 0) - left), y });
  }
  return places;
}

type Links = ReadonlyMap<string, readonly string[]>;

function group(
  ids: readonly string[],
  edges: LineageView["edges"],
  by: "parent" | "child",
  of: "parent" | "child",
): Links {
  const links = new Map<string, string[]>(ids.map((id) => [id, []]));
  for (const edge of edges) if (links.has(edge[of])) links.get(edge[by])?.push(edge[of]);
  return links;
}

/** The sessions by their longest way from a beginning. What is in a cycle, which no store writes, comes first. */
function layersOf(ids: readonly string[], parents: Links, children: Links): readonly string[][] {
  const waiting = new Map(ids.map((id) => [id, parents.get(id)?.length ?? 0]));
  const depths = new Map<string, number>();
  const ready = ids.filter((id) => waiting.get(id) === 0);
  for (const id of ready) {
    const depth = Math.max(-1, ...(parents.get(id) ?? []).map((parent) => depths.get(parent) ?? 0)) + 1;
    depths.set(id, depth);
    for (const child of children.get(id) ?? []) {
      const left = (waiting.get(child) ?? 0) - 1;
      waiting.set(child, left);
      if (left === 0) ready.push(child);
    }
  }
  const layers: string[][] = [];
  for (const id of ids) (layers[depths.get(id) ?? 0] ??= []).push(id);
  return [...layers].map((layer) => layer ?? []);
}

/** Moves the sessions of a layer towards those they are linked with, and apart where they would overlap. */
function settle(layer: readonly string[], links: Links, x: Map<string, number>): void {
  const wish = (id: string): number => {
    const others = (links.get(id) ?? []).map((other) => x.get(other) ?? 0);
    return others.length === 0 ? (x.get(id) ?? 0) : others.reduce((sum, each) => sum + each, 0) / others.length;
  };
  const wanted = layer.map((id) => ({ id, at: wish(id) })).sort((a, b) => a.at - b.at);
  let next = Number.NEGATIVE_INFINITY;
  let moved = 0;
  for (const { id, at } of wanted) {
    const place = Math.max(at, next);
    x.set(id, place);
    moved += place - at;
    next = place + NODE_WIDTH + GAP_X;
  }
  // All were pushed to the right; together they go back by as much as that was on average.
  for (const { id } of wanted) x.set(id, (x.get(id) ?? 0) - moved / wanted.length);
}
