const ends = new Set<() => Promise<void> | void>();

/**
 * Has something closed after the last test of this file. A hook of Vitest in a module counts for one file only, while a process
 * that several files share loads the module once.
 */
export function onFileEnd(end: () => Promise<void> | void): void {
  ends.add(end);
}

/** Closes everything that the tests of a file have opened, latest first. */
export async function endFile(): Promise<void> {
  const all = [...ends].reverse();
  ends.clear();
  for (const end of all) await end();
}
