import { readIoCounters } from "./io-counters.ts";

/** One side of a comparison. */
export interface Contender {
  /** Prepares a round; not measured. */
  prepare?(round: number): Promise<void>;
  /** Called first if the first call of a series costs more than the others; not measured. */
  warmUp?(): Promise<void>;
  run(round: number): Promise<void>;
  /** Writes the pending data of the round. Its bytes count, its time does not. */
  settle?(): Promise<void>;
  /** Cleans up after a round; not measured. */
  finish?(round: number): Promise<void>;
}

/** The cost of one round of one contender. */
export interface Sample {
  readonly timeMs: number;
  readonly writtenBytes: number;
  readonly readBytes: number;
}

/** The number of rounds. Warm-up rounds come first and have negative numbers. */
export interface RaceOptions {
  readonly rounds: number;
  readonly warmups: number;
  /**
   * Forces a garbage collection before each round, so that no contender pays for the garbage of the other. Only for
   * rounds with much garbage: no real program does so between two appends, and the section "append" shows that it
   * changes their cost.
   */
  readonly collects?: boolean;
}

/**
 * Runs the contenders in alternating rounds, so that a disturbance of the machine affects all of them, and returns the
 * samples of each in the order of the rounds. Every other round runs in reverse order, so that no contender is always
 * first.
 */
export async function race<Name extends string>(
  contenders: Readonly<Record<Name, Contender>>,
  { rounds, warmups, collects = false }: RaceOptions,
): Promise<Record<Name, Sample[]>> {
  const names = Object.keys(contenders) as Name[];
  const samples = Object.fromEntries(names.map((name) => [name, [] as Sample[]])) as Record<Name, Sample[]>;
  for (let round = -warmups; round < rounds; round++) {
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      const sample = await measure(contenders[name], round, collects);
      if (round >= 0) samples[name].push(sample);
    }
  }
  return samples;
}

async function measure(contender: Contender, round: number, collects: boolean): Promise<Sample> {
  await contender.prepare?.(round);
  await contender.settle?.();
  if (collects) globalThis.gc?.();
  await contender.warmUp?.();
  const before = readIoCounters();
  const startedAt = performance.now();
  await contender.run(round);
  const timeMs = performance.now() - startedAt;
  await contender.settle?.();
  const after = readIoCounters();
  await contender.finish?.(round);
  return {
    timeMs,
    writtenBytes: after.writtenBytes - before.writtenBytes,
    readBytes: after.readBytes - before.readBytes,
  };
}
