/** What a process holds after all garbage was collected. */
export interface AppMemory {
  /** Heap and external memory of JavaScript. */
  readonly heldBytes: number;
  /** All memory of the process. */
  readonly residentBytes: number;
}

/** What this process holds. */
export function readMemory(): AppMemory {
  // The second collection takes what finalizers of the first one let go of.
  for (let times = 0; times < 2; times++) globalThis.gc?.();
  const { heapUsed, external, rss } = process.memoryUsage();
  return { heldBytes: heapUsed + external, residentBytes: rss };
}
