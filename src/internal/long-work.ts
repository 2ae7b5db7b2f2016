import { AsyncLocalStorage } from "node:async_hooks";

/** How often short work has its turn between two slices: a request that is new takes several turns of the event loop. */
const TURNS_BETWEEN = 4;

/** Whoever has long work done, and wants a word in how it goes on. */
export interface LongWork {
  /**
   * Called before each slice with how many bytes were worked on since the last. Null lets it go on; a promise makes it wait,
   * and one that is rejected ends it.
   */
  goOn(bytes: number): Promise<void> | null;
}

const current = new AsyncLocalStorage<LongWork>();
const waiting: (() => void)[] = [];
let going = false;

/** Runs a task whose slices, and those of all that it awaits, ask `work` before they go on. */
export function withLongWork<T>(work: LongWork, task: () => T): T {
  return current.run(work, task);
}

/**
 * Waits until the next slice of some long work may be done: of all that wait in this process, one slice is done after the
 * other, and between two of them everything short has its turn. So a short request waits for one slice and not for all.
 */
export async function nextSlice(bytes = 0): Promise<void> {
  const work = current.getStore();
  await work?.goOn(bytes);
  await new Promise<void>((resolve) => {
    waiting.push(resolve);
    if (going) return;
    going = true;
    letOthers(TURNS_BETWEEN);
  });
  // What nobody wants any more since it began to wait is not done.
  await work?.goOn(0);
}

/** How long something may take at once before it counts as a slice. */
const SLICE_MS = 5;

/**
 * Does what may turn out to take long, as one slice where long work is under way. No function that waits in between: of many
 * that come at the same moment, the first is done at once, and the others wait if it took long.
 */
export function asSlice<T>(task: () => Promise<T>): Promise<T> {
  if (going) return nextSlice().then(task);
  const startMs = performance.now();
  const result = task();
  if (performance.now() - startMs > SLICE_MS) {
    going = true;
    letOthers(TURNS_BETWEEN);
  }
  return result;
}

function letOthers(turns: number): void {
  setImmediate(() => {
    if (turns > 1) return letOthers(turns - 1);
    const next = waiting.shift();
    going = next !== undefined;
    if (next === undefined) return;
    next();
    letOthers(TURNS_BETWEEN);
  });
}
