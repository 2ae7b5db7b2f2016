import { readFileSync, writeFileSync } from "node:fs";

/** The memory of a process after a garbage collection. */
export interface AppMemory {
  /** The heap and the external memory of JavaScript. */
  readonly heldBytes: number;
  /** The resident memory of the process. */
  readonly residentBytes: number;
}

/** The memory of this process. */
export function readMemory(): AppMemory {
  // The second collection frees what finalizers of the first one have released.
  for (let times = 0; times < 2; times++) globalThis.gc?.();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heldBytes: heapUsed + external, residentBytes: rss };
}

/** The most memory that a process had. */
export interface AppPeak extends AppMemory {
  /** Since the last time that the peak was reset. */
  readonly peakBytes: number;
}

/** Reads the most memory of this process since the last call. Linux only. */
export function resetPeak(): AppPeak {
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
  const memory = readMemory();
  // 5 resets the peak.
  writeFileSync("/proc/self/clear_refs", "5");
  return { ...memory, peakBytes: Number(peak) * 1024 };
}
