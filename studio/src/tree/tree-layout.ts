import type { TreeElement, TreeElements } from "./tree-elements.ts";

/** The position of an element: its row and its column. */
export interface Spot {
  readonly element: TreeElement;
  readonly row: number;
  readonly lane: number;
}

/** The positions of all elements. */
export interface TreeLayout {
  /** The elements of each row, from left to right. */
  readonly rows: readonly (readonly Spot[])[];
  readonly lanes: number;
  readonly spots: ReadonlyMap<string, Spot>;
}

/**
 * Lays out a tree in rows and columns. A branch stays in one column; the active path is in the first. An element that
 * is added at the end moves no other, so that a live tree does not jump.
 */
export function layOut({ roots }: Pick<TreeElements, "roots">): TreeLayout {
  const rows: Spot[][] = [];
  const spots = new Map<string, Spot>();
  const taken: [number, number][][] = [];
  const waiting = roots.map((start) => ({ start, row: 0, right: -1 })).reverse();
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const line = lineFrom(next.start);
    const lane = freeLane(taken, next.right + 1, next.row, next.row + line.length - 1);
    for (const [index, element] of line.entries()) {
      const row = next.row + index;
      const spot = { element, row, lane };
      spots.set(element.id, spot);
      (rows[row] ??= []).push(spot);
      // The last one pushed is laid out first: the lowest branch gets the innermost column, so that lines do not cross.
      const beside = element.children.slice(1).reverse();
      for (const start of beside) waiting.push({ start, row: row + 1, right: lane });
    }
  }
  for (const row of rows) row.sort((a, b) => a.lane - b.lane);
  return { rows, lanes: taken.length, spots };
}

/** An element and its first descendants, which share its column. */
function lineFrom(start: TreeElement): readonly TreeElement[] {
  const line: TreeElement[] = [];
  for (let next: TreeElement | undefined = start; next !== undefined; next = next.children[0]) line.push(next);
  return line;
}

function freeLane(taken: [number, number][][], from: number, first: number, last: number): number {
  let lane = from;
  while (taken[lane]?.some(([start, end]) => start <= last && first <= end)) lane++;
  for (let index = taken.length; index <= lane; index++) taken[index] = [];
  taken[lane]?.push([first, last]);
  return lane;
}
