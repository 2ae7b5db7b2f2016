import type { Sample } from "./race.ts";

/** The middle value; of two middle ones, their mean. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The value that a share of all values does not exceed. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** The median time of a round. */
export function medianMs(samples: readonly Sample[]): number {
  return median(samples.map(({ timeMs }) => timeMs));
}

/** The time of the quickest round: what the median would come to on a machine that does nothing else. */
export function bestMs(samples: readonly Sample[]): number {
  return Math.min(...samples.map(({ timeMs }) => timeMs));
}

/**
 * How many times as long as the second the first one takes: the median of the rounds' own ratios. Both sides of a ratio
 * ran next to each other, so a machine that is slow for a while does not shift it.
 */
export function timeRatio(first: readonly Sample[], second: readonly Sample[]): number {
  return median(first.map(({ timeMs }, round) => timeMs / (second[round]?.timeMs ?? Number.NaN)));
}

/** Bytes written in all rounds together. Their mean counts, since a database writes some of its bytes later. */
export function writtenBytes(samples: readonly Sample[]): number {
  return samples.reduce((sum, sample) => sum + sample.writtenBytes, 0);
}
