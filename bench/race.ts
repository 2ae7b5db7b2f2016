import { readIoCounters } from "./io-counters.ts";

/** One side of a comparison. */
export interface Contender {
  /** Makes ready for a round; not measured. */
  prepare?(round: number): Promise<void>;
  /** Goes first where the first call of a series costs more than the others; not measured. */
  warmUp?(): Promise<void>;
  run(round: number): Promise<void>;
  /** Writes what is still to be written for the round. Its bytes count; its time does not. */
  settle?(): Promise<void>;
  /** Clears up after a round; not measured. */
  finish?(round: number): Promise<void>;
}

/** What one round of one contender took. */
export interface Sample {
  readonly timeMs: number;
  readonly writtenBytes: number;
  readonly readBytes: number;
}

/** How long to race. Rounds that do not count come first and have negative numbers. */
export interface RaceOptions {
  readonly rounds: number;
  readonly warmups: number;
  /**
   * Collects all garbage before each round, so that none pays for what the other left. It is for rounds that leave much:
   * no program does it between two appends, and the section "append" shows that it changes what they cost.
   */
  readonly collects?: boolean;
}

/**
 * Runs the contenders in alternating rounds, so that a disturbance of the machine meets all of them, and gives the
 * samples of each in the order of the rounds. Every other round goes backward, so that none is always the first.
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
