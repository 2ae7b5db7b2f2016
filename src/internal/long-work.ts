import { AsyncLocalStorage } from "node:async_hooks";

/** How many turns of the event loop pass between two slices: a new request needs several turns. */
const TURNS_BETWEEN = 4;

/** The caller of long work, which can pause or cancel it between slices. */
export interface LongWork {
  /**
   * Called before each slice with the number of bytes that were processed since the last call. Null continues; a promise
   * pauses until it resolves, and cancels the work if it rejects.
   */
  beforeSlice(bytes: number): Promise<void> | null;
}

const current = new AsyncLocalStorage<LongWork>();
const waiting: (() => void)[] = [];
/** Whether a slice is queued, or one has just run. */
let isRunning = false;

/** Runs a task. All slices of the task, and of everything that it awaits, call `work.beforeSlice` first. */
export function withLongWork<T>(work: LongWork, task: () => T): T {
  return current.run(work, task);
}

/**
 * Waits in the queue of this process for the next slice of long work. Slices run one after another, with some turns of the
 * event loop between them, so that a short request waits for one slice and not for all of them.
 */
export async function nextSlice(bytes = 0): Promise<void> {
  const work = current.getStore();
  await work?.beforeSlice(bytes);
  await new Promise<void>((resolve) => {
    waiting.push(resolve);
    if (isRunning) return;
    isRunning = true;
    runNextAfter(TURNS_BETWEEN);
  });
  // The work may have been cancelled while it waited.
  await work?.beforeSlice(0);
}

/** A synchronous task that takes longer than this counts as a slice. */
const SLICE_MS = 5;

/**
 * Runs a task that may take long. If slices are queued, the task waits for its own slice. Otherwise it runs synchronously,
 * and if it took long, the next tasks wait for a slice. Not an async function, so that the first of several tasks that
 * arrive together runs without a delay.
 */
export function asSlice<T>(task: () => Promise<T>): Promise<T> {
  if (isRunning) return nextSlice().then(task);
  const startMs = performance.now();
  const result = task();
  if (performance.now() - startMs > SLICE_MS) {
    isRunning = true;
    runNextAfter(TURNS_BETWEEN);
  }
  return result;
}

/** Starts the next waiting slice after some turns of the event loop. */
function runNextAfter(turns: number): void {
  setImmediate(() => {
    if (turns > 1) return runNextAfter(turns - 1);
    const next = waiting.shift();
    isRunning = next !== undefined;
    if (next === undefined) return;
    next();
    runNextAfter(TURNS_BETWEEN);
  });
}
