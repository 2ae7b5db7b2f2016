const DISTANCE_MAX = 2;

/** The known word with the smallest edit distance to a mistyped one; null if none is close. */
export function nearest(word: string, known: Iterable<string>): string | null {
  let best: string | null = null;
  // A short word with two wrong letters is too different to be recognised.
  let least = Math.min(DISTANCE_MAX, Math.floor(word.length / 2)) + 1;
  for (const candidate of known) {
    if (Math.abs(candidate.length - word.length) >= least) continue;
    const distance = distanceBetween(word, candidate);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

/** Text for the end of an error message about an unknown word: ` did you mean …?`, or "" if no known word is close. */
export function suggestion(word: string, known: Iterable<string>, prefix = ""): string {
  const meant = nearest(word, known);
  return meant === null ? "" : ` did you mean ${prefix}${meant}?`;
}

function distanceBetween(one: string, other: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let i = 1; i <= one.length; i++) {
    const row = [i];
    for (let j = 1; j <= other.length; j++) {
      const wrong = one[i - 1] === other[j - 1] ? 0 : 1;
      let cost = Math.min((last[j] as number) + 1, (row[j - 1] as number) + 1, (last[j - 1] as number) + wrong);
      const swapped = i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      if (swapped) cost = Math.min(cost, (beforeLast[j - 2] as number) + 1);
      row.push(cost);
    }
    [beforeLast, last] = [last, row];
  }
  return last[other.length] as number;
}
