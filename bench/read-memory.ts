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
