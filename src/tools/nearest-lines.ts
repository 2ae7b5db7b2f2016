const LINES_SEARCHED_MAX = 50_000;
const CHARACTERS_COMPARED_MAX = 200;
const LINES_SHOWN_MAX = 12;
const LIKENESS_MIN = 0.4;

/** The lines of a text that are most like the wanted ones, with their numbers, or null when none are alike. */
export function showNearestLines(lines: readonly string[], wanted: readonly string[]): string | null {
  // The longest line is the one least likely to be alike to another by chance.
  const anchor = wanted.reduce(
    (best, line, index) => (line.trim().length > (wanted[best] ?? "").trim().length ? index : best),
    0,
  );
  const compare = likenessTo((wanted[anchor] ?? "").trim());
  let best = { likeness: LIKENESS_MIN, equal: -1, start: -1 };
  for (const [index, line] of lines.slice(0, LINES_SEARCHED_MAX).entries()) {
    const likeness = compare(line.trim());
    if (likeness < best.likeness) continue;
    const start = index - anchor;
    const equal = wanted.filter((each, offset) => each.trim() === lines[start + offset]?.trim()).length;
    if (likeness > best.likeness || equal > best.equal) best = { likeness, equal, start };
  }
  if (best.equal < 0) return null;
  const from = Math.max(0, best.start);
  const to = Math.min(best.start + wanted.length, from + LINES_SHOWN_MAX);
  return lines
    .slice(from, Math.max(to, from + 1))
    .map((line, index) => `${from + index + 1}: ${line.slice(0, CHARACTERS_COMPARED_MAX)}`)
    .join("\n");
}

/** How much of its pairs of characters another text shares with this one, from 0 to 1. */
function likenessTo(text: string): (other: string) => number {
  const pairs = pairsOf(text);
  return (other) => {
    if (other === text) return 1;
    const otherPairs = pairsOf(other);
    let shared = 0;
    for (const [pair, count] of otherPairs.counts) shared += Math.min(count, pairs.counts.get(pair) ?? 0);
    const total = pairs.total + otherPairs.total;
    return total === 0 ? 0 : (2 * shared) / total;
  };
}

function pairsOf(text: string): { readonly counts: ReadonlyMap<string, number>; readonly total: number } {
  const counts = new Map<string, number>();
  const end = Math.min(text.length, CHARACTERS_COMPARED_MAX) - 1;
  for (let index = 0; index < end; index++) {
    const pair = text.slice(index, index + 2);
    counts.set(pair, (counts.get(pair) ?? 0) + 1);
  }
  return { counts, total: Math.max(0, end) };
}
