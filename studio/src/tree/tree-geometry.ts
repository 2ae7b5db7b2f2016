import type { Spot, TreeLayout } from "./tree-layout.ts";

/** The size of an element, in pixels at zoom 1. */
export const BOX = { width: 184, height: 46 } as const;

/** The distance between elements, across and down. */
const STEP = { x: 208, y: 66 } as const;

/** Below this zoom, elements have no text, as it would be unreadable. */
export const TEXT_ZOOM_MIN = 0.5;

/** The range of the zoom. */
const ZOOM = { min: 0.04, max: 2 } as const;

const CORNER = 8;
const MARGIN = 24;
/** Reserved for the buttons at the bottom. */
const MARGIN_BELOW = 60;

/** The visible part of the drawing: a point is shown at its position times `zoom`, plus `x` and `y`. */
export interface Viewport {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

/** The size of the viewport's element. */
export interface Size {
  readonly width: number;
  readonly height: number;
}

/** The upper left corner of an element. */
export function cornerOf({ row, lane }: Pick<Spot, "row" | "lane">): { readonly x: number; readonly y: number } {
  return { x: lane * STEP.x, y: row * STEP.y };
}

/** The visible elements of a layout, with a margin, and the lines as the data of two SVG paths. */
export function seenOf(
  layout: TreeLayout,
  viewport: Viewport,
  size: Size,
): { readonly spots: readonly Spot[]; readonly lines: string; readonly activeLines: string } {
  const first = Math.max(0, Math.floor(-viewport.y / viewport.zoom / STEP.y) - 1);
  const last = Math.min(layout.rows.length - 1, Math.ceil((size.height - viewport.y) / viewport.zoom / STEP.y) + 1);
  const left = Math.floor(-viewport.x / viewport.zoom / STEP.x) - 1;
  const right = Math.ceil((size.width - viewport.x) / viewport.zoom / STEP.x) + 1;
  const spots: Spot[] = [];
  const lines: string[] = [];
  const activeLines: string[] = [];
  for (let row = first; row <= last; row++) {
    let beyond: Spot | null = null;
    for (const spot of layout.rows[row] ?? []) {
      if (spot.lane >= left && spot.lane <= right) spots.push(spot);
      const parent = spot.element.parent === null ? undefined : layout.spots.get(spot.element.parent.id);
      if (parent === undefined || spot.lane < left || parent.lane > right) continue;
      // Lines that leave on the right overlap: one for each parent is enough.
      if (spot.lane > right && beyond?.element.parent === spot.element.parent) continue;
      if (spot.lane > right) beyond = spot;
      (spot.element.active ? activeLines : lines).push(lineBetween(parent, spot));
    }
  }
  return { spots, lines: lines.join(""), activeLines: activeLines.join("") };
}

/** The outlines of elements as the data of an SVG path, for a zoom without text. */
export function outlineOf(spots: readonly Spot[]): string {
  return spots
    .map((spot) => {
      const { x, y } = cornerOf(spot);
      return `M${x} ${y}h${BOX.width}v${BOX.height}h${-BOX.width}z`;
    })
    .join("");
}

/** The element at a point of the viewport. */
export function spotAt(layout: TreeLayout, viewport: Viewport, x: number, y: number): Spot | null {
  const across = (x - viewport.x) / viewport.zoom / STEP.x;
  const down = (y - viewport.y) / viewport.zoom / STEP.y;
  const lane = Math.floor(across);
  return layout.rows[Math.floor(down)]?.find((spot) => spot.lane === lane) ?? null;
}

/** The size of the whole drawing at zoom 1. */
export function pictureSize(layout: TreeLayout): Size {
  return {
    width: Math.max(1, layout.lanes) * STEP.x - (STEP.x - BOX.width),
    height: Math.max(1, layout.rows.length) * STEP.y - (STEP.y - BOX.height),
  };
}

/** Limits the viewport so that a part of the drawing stays visible. */
export function kept(viewport: Viewport, picture: Size, size: Size): Viewport {
  const { zoom } = viewport;
  return {
    zoom,
    x: within(viewport.x, 2 * MARGIN - picture.width * zoom, size.width - 2 * MARGIN),
    y: within(viewport.y, 2 * MARGIN - picture.height * zoom, size.height - MARGIN_BELOW),
  };
}

/** The point of the drawing that is nearest to the middle of the viewport, in viewport coordinates. */
export function middleOf(viewport: Viewport, picture: Size, size: Size): { readonly x: number; readonly y: number } {
  return {
    x: within(size.width / 2, viewport.x, viewport.x + picture.width * viewport.zoom),
    y: within(size.height / 2, viewport.y, viewport.y + picture.height * viewport.zoom),
  };
}

/** The viewport that shows the whole layout, at most at zoom 1. */
export function fitted(layout: TreeLayout, size: Size): Viewport {
  const { width, height } = pictureSize(layout);
  const room = Math.min((size.width - 2 * MARGIN) / width, (size.height - MARGIN - MARGIN_BELOW) / height);
  const zoom = Math.min(1, Math.max(ZOOM.min, room));
  return { x: Math.max(MARGIN, (size.width - width * zoom) / 2), y: MARGIN, zoom };
}

/** Moves the viewport by the minimum needed to show an element. */
export function revealed(spot: Spot, viewport: Viewport, size: Size): Viewport {
  const { x, y } = cornerOf(spot);
  return {
    ...viewport,
    x: within(viewport.x, MARGIN - x * viewport.zoom, size.width - MARGIN - (x + BOX.width) * viewport.zoom),
    y: within(viewport.y, MARGIN - y * viewport.zoom, size.height - MARGIN_BELOW - (y + BOX.height) * viewport.zoom),
  };
}

/** Whether a part of an element is visible. */
export function isSeen(spot: Spot, viewport: Viewport, size: Size): boolean {
  const { x, y } = cornerOf(spot);
  const [left, top] = [x * viewport.zoom + viewport.x, y * viewport.zoom + viewport.y];
  const [right, bottom] = [left + BOX.width * viewport.zoom, top + BOX.height * viewport.zoom];
  return right > 0 && bottom > 0 && left < size.width && top < size.height;
}

/** Zooms around a point of the viewport, which stays in place. */
export function zoomed(viewport: Viewport, factor: number, x: number, y: number): Viewport {
  const zoom = Math.min(ZOOM.max, Math.max(ZOOM.min, viewport.zoom * factor));
  const ratio = zoom / viewport.zoom;
  return { x: x - (x - viewport.x) * ratio, y: y - (y - viewport.y) * ratio, zoom };
}

function within(value: number, least: number, most: number): number {
  // Without enough room, the lower limit wins.
  return least > most ? least : Math.min(most, Math.max(least, value));
}

function lineBetween(parent: Spot, child: Spot): string {
  const from = cornerOf(parent);
  const to = cornerOf(child);
  const [x, endX] = [from.x + BOX.width / 2, to.x + BOX.width / 2];
  const [y, middle] = [from.y + BOX.height, (from.y + BOX.height + to.y) / 2];
  if (x === endX) return `M${x} ${y}V${to.y}`;
  const bend = `Q${x} ${middle} ${x + CORNER} ${middle}H${endX - CORNER}Q${endX} ${middle} ${endX} ${middle + CORNER}`;
  return `M${x} ${y}V${middle - CORNER}${bend}V${to.y}`;
}
