/** A piece of a text, which either both texts or only this one contains. */
export interface Piece {
  readonly text: string;
  readonly own: boolean;
}

/** Two texts, split into pieces by words. */
export interface WordComparison {
  readonly left: readonly Piece[];
  readonly right: readonly Piece[];
}

/** Longer texts get no marks: they would be slow to compute, and hard to read. */
const CHARACTERS_MAX = 20_000;
/** The maximum size of the comparison table. */
const CELLS_MAX = 1_000_000;
/** Below this share of common words, texts are too different for useful marks. */
const SHARED_MIN = 0.15;

/** Finds the words that only one of two texts contains. */
export function compareWords(left: string, right: string): WordComparison {
  if (left === right || left.length > CHARACTERS_MAX || right.length > CHARACTERS_MAX) return plain(left, right);
  const [a, b] = [wordsOf(left), wordsOf(right)];
  const keep = common(a, b);
  if (keep === null) return plain(left, right);
  const shared = keep.filter(([index]) => /\w/.test(a[index] ?? "")).length;
  const words = Math.max(count(a), count(b));
  if (words > 0 && shared / words < SHARED_MIN) return plain(left, right);
  return {
    left: piecesOf(a, new Set(keep.map(([index]) => index))),
    right: piecesOf(b, new Set(keep.map(([, index]) => index))),
  };
}

function plain(left: string, right: string): WordComparison {
  return { left: [{ text: left, own: false }], right: [{ text: right, own: false }] };
}

function wordsOf(text: string): readonly string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}

function count(words: readonly string[]): number {
  return words.filter((word) => /\w/.test(word)).length;
}

/** The index pairs of a longest common subsequence; null if it would take too long to compute. */
function common(a: readonly string[], b: readonly string[]): (readonly [number, number])[] | null {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a.at(-1 - tail) === b.at(-1 - tail)) tail++;
  const [rows, columns] = [a.length - head - tail, b.length - head - tail];
  if ((rows + 1) * (columns + 1) > CELLS_MAX) return null;
  const places: (readonly [number, number])[] = [];
  for (let index = 0; index < head; index++) places.push([index, index]);
  places.push(
    ...middle(a.slice(head, head + rows), b.slice(head, head + columns)).map(([x, y]) => [x + head, y + head] as const),
  );
  for (let index = tail; index > 0; index--) places.push([a.length - index, b.length - index]);
  return places;
}

function middle(a: readonly string[], b: readonly string[]): (readonly [number, number])[] {
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  const at = (x: number, y: number): number => lengths[x * width + y] ?? 0;
  for (let x = a.length - 1; x >= 0; x--) {
    for (let y = b.length - 1; y >= 0; y--) {
      lengths[x * width + y] = a[x] === b[y] ? at(x + 1, y + 1) + 1 : Math.max(at(x + 1, y), at(x, y + 1));
    }
  }
  const places: (readonly [number, number])[] = [];
  for (let x = 0, y = 0; x < a.length && y < b.length; ) {
    if (a[x] === b[y]) places.push([x++, y++]);
    else if (at(x + 1, y) >= at(x, y + 1)) x++;
    else y++;
  }
  return places;
}

/** Joins adjacent words; a space between two words that only one side contains is marked as well. */
function piecesOf(words: readonly string[], shared: ReadonlySet<number>): readonly Piece[] {
  const pieces: { text: string; own: boolean }[] = [];
  words.forEach((word, index) => {
    const between = /^\s+$/.test(word) && index > 0 && !shared.has(index - 1) && !shared.has(index + 1);
    const own = !shared.has(index) || (between && index + 1 < words.length);
    const last = pieces.at(-1);
    if (last !== undefined && last.own === own) last.text += word;
    else pieces.push({ text: word, own });
  });
  return pieces;
}
