import type { Sample } from "./race.ts";

/** The median; for an even count, the mean of the two middle values. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}

/** The smallest value that is not exceeded by the given share of all values. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}

/** The median time of a round. */
export function medianMs(samples: readonly Sample[]): number {
  return median(samples.map(({ timeMs }) => timeMs));
}

/** The mean time of a round, for contenders whose rounds differ by themselves. */
export function meanMs(samples: readonly Sample[]): number {
  return samples.reduce((sum, { timeMs }) => sum + timeMs, 0) / samples.length;
}

/** The time of the fastest round: an estimate of the median on an idle machine. */
export function bestMs(samples: readonly Sample[]): number {
  return Math.min(...samples.map(({ timeMs }) => timeMs));
}

/**
 * The median of the rounds' ratios of the first time to the second. Both sides of a ratio ran next to each other, so a
 * temporarily slow machine does not change it.
 */
export function timeRatio(first: readonly Sample[], second: readonly Sample[]): number {
  return median(first.map(({ timeMs }, round) => timeMs / (second[round]?.timeMs ?? Number.NaN)));
}

/** The mean of the bytes written in all rounds, since a database writes some of its bytes later. */
export function writtenBytes(samples: readonly Sample[]): number {
  return samples.reduce((sum, sample) => sum + sample.writtenBytes, 0);
}
