import type { LineageView } from "skein/client";

/** A point of the graph; for a session, its upper left corner. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The width of a session in the graph, in pixels. */
export const NODE_WIDTH = 208;
/** The height of a session in the graph, in pixels. */
export const NODE_HEIGHT = 92;
const GAP_X = 32;
/** The width reserved for an edge that passes a session. */
const PASS_WIDTH = 24;
/** Above this number, edges are straight: so many edges cannot be told apart anyway. */
const PASSES_MAX = 3000;
const GAP_Y = 72;
/** How often the sessions are moved towards their parents and children; more sweeps make no visible difference. */
const SWEEPS = 4;

/** The positions of all sessions and edges. */
export interface LineageLayout {
  readonly points: ReadonlyMap<string, Point>;
  /** By `arrowId`, the points of an edge that would otherwise run behind sessions between its ends. */
  readonly bends: ReadonlyMap<string, readonly Point[]>;
}

type Arrow = LineageView["edges"][number];

/** The id of an edge. */
export function arrowId({ parent, child }: Arrow): string {
  return `${parent} ${child}`;
}

/** Places every session below all of its parents, and as near to them as possible. */
export function layOutLineage({ nodes, edges }: Pick<LineageView, "nodes" | "edges">): LineageLayout {
  const ids = nodes.map(({ id }) => id);
  const layers = layersOf(ids, linksOf(ids, edges, "child", "parent"), linksOf(ids, edges, "parent", "child"));
  const { arrows, passes } = withPasses(layers, edges);
  const all = layers.flat();
  const parents = linksOf(all, arrows, "child", "parent");
  const children = linksOf(all, arrows, "parent", "child");
  const widthOf = (id: string): number => (passes.has(id) ? PASS_WIDTH : NODE_WIDTH);
  // Compared by their centers, as session and placeholder have different widths.
  const x = new Map<string, number>();
  for (const layer of layers) for (const [index, id] of layer.entries()) x.set(id, index * (NODE_WIDTH + GAP_X));
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    for (const layer of layers) settle(layer, parents, x, widthOf);
    for (const layer of layers.toReversed()) settle(layer, children, x, widthOf);
  }
  const left = Math.min(0, ...all.map((id) => (x.get(id) ?? 0) - widthOf(id) / 2));
  const points = new Map<string, Point>();
  const bends = new Map<string, Point[]>();
  for (const [depth, layer] of layers.entries()) {
    const y = depth * (NODE_HEIGHT + GAP_Y);
    for (const id of layer) {
      const middle = (x.get(id) ?? 0) - left;
      const arrow = passes.get(id);
      if (arrow === undefined) points.set(id, { x: Math.round(middle - NODE_WIDTH / 2), y });
      else bends.set(arrow, [...(bends.get(arrow) ?? []), { x: Math.round(middle), y }]);
    }
  }
  return { points, bends };
}

type Links = ReadonlyMap<string, readonly string[]>;
type End = keyof Arrow;

function linksOf(ids: readonly string[], arrows: readonly Arrow[], by: End, of: End): Links {
  const links = new Map<string, string[]>(ids.map((id) => [id, []]));
  for (const arrow of arrows) if (links.has(arrow[of])) links.get(arrow[by])?.push(arrow[of]);
  return links;
}

/** Puts a placeholder into every layer that an arrow passes, so that room is made for it there. */
function withPasses(
  layers: readonly string[][],
  edges: readonly Arrow[],
): { readonly arrows: readonly Arrow[]; readonly passes: ReadonlyMap<string, string> } {
  const depths = new Map(layers.flatMap((layer, depth) => layer.map((id) => [id, depth] as const)));
  const passes = new Map<string, string>();
  const arrows: Arrow[] = [];
  for (const edge of edges) {
    const last = depths.get(edge.child) ?? 0;
    let parent = edge.parent;
    for (let depth = (depths.get(edge.parent) ?? last) + 1; depth < last && passes.size < PASSES_MAX; depth++) {
      // Unique, as no session id contains a space.
      const child = `${arrowId(edge)} ${depth}`;
      passes.set(child, arrowId(edge));
      layers[depth]?.push(child);
      arrows.push({ parent, child });
      parent = child;
    }
    arrows.push({ parent, child: edge.child });
  }
  return { arrows, passes };
}

/** The sessions by their longest path from a root. Sessions in a cycle, which no store writes, come first. */
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

/** Moves the sessions of a layer towards their linked sessions, and apart where they would overlap. */
function settle(layer: readonly string[], links: Links, x: Map<string, number>, widthOf: (id: string) => number): void {
  const preferredAt = (id: string): number => {
    const others = (links.get(id) ?? []).map((other) => x.get(other) ?? 0);
    return others.length === 0 ? (x.get(id) ?? 0) : others.reduce((sum, each) => sum + each, 0) / others.length;
  };
  const wanted = layer.map((id) => ({ id, at: preferredAt(id), half: widthOf(id) / 2 })).sort((a, b) => a.at - b.at);
  let next = Number.NEGATIVE_INFINITY;
  let moved = 0;
  for (const { id, at, half } of wanted) {
    const point = Math.max(at, next + half);
    x.set(id, point);
    moved += point - at;
    next = point + half + GAP_X;
  }
  // Overlaps are resolved by moving to the right; move the whole layer back by the average.
  for (const { id } of wanted) x.set(id, (x.get(id) ?? 0) - moved / wanted.length);
}
