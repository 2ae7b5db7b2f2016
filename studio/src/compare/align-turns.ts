import type { TurnRow } from "./turn-row.ts";

/** Two turns side by side; null where a side has none. */
export interface TurnPair {
  readonly left: TurnRow | null;
  readonly right: TurnRow | null;
  /** Whether both have the same content. */
  readonly same: boolean;
}

/** The maximum size of the alignment table; longer sides are paired by position. */
const CELLS_MAX = 1_000_000;
const SAME_SCORE = 4;

/** Aligns the turns of two branches in order: equal turns first, else turns of the same role. */
export function alignTurns(left: readonly TurnRow[], right: readonly TurnRow[]): readonly TurnPair[] {
  if ((left.length + 1) * (right.length + 1) > CELLS_MAX) return byPosition(left, right);
  const width = right.length + 1;
  const best = new Uint32Array((left.length + 1) * width);
  const at = (x: number, y: number): number => best[x * width + y] ?? 0;
  for (let x = left.length - 1; x >= 0; x--) {
    for (let y = right.length - 1; y >= 0; y--) {
      const score = scoreOf(left[x] as TurnRow, right[y] as TurnRow);
      const paired = score === 0 ? 0 : score + at(x + 1, y + 1);
      best[x * width + y] = Math.max(paired, at(x + 1, y), at(x, y + 1));
    }
  }
  const pairs: TurnPair[] = [];
  let [x, y] = [0, 0];
  while (x < left.length && y < right.length) {
    const [a, b] = [left[x] as TurnRow, right[y] as TurnRow];
    const score = scoreOf(a, b);
    if (score > 0 && score + at(x + 1, y + 1) === at(x, y)) {
      pairs.push({ left: a, right: b, same: score === SAME_SCORE });
      x++;
      y++;
    } else if (at(x + 1, y) >= at(x, y + 1)) pairs.push({ left: left[x++] as TurnRow, right: null, same: false });
    else pairs.push({ left: null, right: right[y++] as TurnRow, same: false });
  }
  return [...pairs, ...byPosition(left.slice(x), right.slice(y))];
}

function byPosition(left: readonly TurnRow[], right: readonly TurnRow[]): readonly TurnPair[] {
  return Array.from({ length: Math.max(left.length, right.length) }, (_, index) => {
    const [a, b] = [left[index] ?? null, right[index] ?? null];
    return { left: a, right: b, same: a !== null && b !== null && scoreOf(a, b) === SAME_SCORE };
  });
}

function scoreOf(a: TurnRow, b: TurnRow): number {
  if (a.kind !== b.kind || a.title !== b.title) return 0;
  return a.id === b.id || (a.text === b.text && sameCalls(a, b)) ? SAME_SCORE : 1;
}

function sameCalls(a: TurnRow, b: TurnRow): boolean {
  if (a.calls.length !== b.calls.length) return false;
  return a.calls.every((call, index) => {
    const other = b.calls[index];
    return call.name === other?.name && call.arguments === other.arguments;
  });
}
