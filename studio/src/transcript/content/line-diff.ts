/** A line of a diff: in both texts, only in the old one, or only in the new one. */
export interface DiffLine {
  readonly kind: "same" | "removed" | "added";
  readonly text: string;
}

/** Above this number of comparisons, the changed middle is shown as fully removed and added. */
const COMPARISONS_MAX = 400_000;

/** The differences between two texts, line by line. */
export function diffLines(oldText: string, newText: string): readonly DiffLine[] {
  const [before, after] = [linesOf(oldText), linesOf(newText)];
  const shorter = Math.min(before.length, after.length);
  let start = 0;
  while (start < shorter && before[start] === after[start]) start++;
  let end = 0;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end++;
  const middle = diffMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end));
  const same = (text: string): DiffLine => ({ kind: "same", text });
  return [...before.slice(0, start).map(same), ...middle, ...before.slice(before.length - end).map(same)];
}

function linesOf(text: string): string[] {
  if (text === "") return [];
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

function diffMiddle(before: readonly string[], after: readonly string[]): DiffLine[] {
  if (before.length * after.length > COMPARISONS_MAX) {
    return [
      ...before.map((text): DiffLine => ({ kind: "removed", text })),
      ...after.map((text): DiffLine => ({ kind: "added", text })),
    ];
  }
  const lengths = commonLengths(before, after);
  const found: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    const [down, right] = [lengths[i + 1]?.[j] ?? -1, lengths[i]?.[j + 1] ?? -1];
    if (i < before.length && j < after.length && before[i] === after[j]) {
      found.push({ kind: "same", text: before[i++] as string });
      j++;
    } else if (i < before.length && (j === after.length || down >= right)) {
      found.push({ kind: "removed", text: before[i++] as string });
    } else {
      found.push({ kind: "added", text: after[j++] as string });
    }
  }
  return found;
}

/** The lengths of the longest common subsequences of the remaining lines, for each pair of start lines. */
function commonLengths(before: readonly string[], after: readonly string[]): Uint32Array[] {
  const lengths = Array.from({ length: before.length + 1 }, () => new Uint32Array(after.length + 1));
  for (let i = before.length - 1; i >= 0; i--) {
    const [row, below] = [lengths[i] as Uint32Array, lengths[i + 1] as Uint32Array];
    for (let j = after.length - 1; j >= 0; j--) {
      const longest = before[i] === after[j] ? (below[j + 1] ?? 0) + 1 : Math.max(below[j] ?? 0, row[j + 1] ?? 0);
      row[j] = longest;
    }
  }
  return lengths;
}
