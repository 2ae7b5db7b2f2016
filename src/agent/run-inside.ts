import { AsyncLocalStorage } from "node:async_hooks";

/** Code that a run waits for. */
interface Inside {
  readonly run: object;
  /** False once the run has its result; code that is still running after that may wait for the run. */
  awaited: boolean;
}

/** The runs that wait for the present code, across `await`. */
const followed = new AsyncLocalStorage<readonly Inside[]>();
let unanswered = 0;

/**
 * Functions that have returned only synchronously so far. Following code across `await` slows down every promise of
 * the process; for synchronous code, a variable is enough.
 */
const answersAtOnce = new WeakSet<object>();
let present: readonly Inside[] | null = null;

/** Whether the present code is code that the run waits for. */
export function isInside(run: object): boolean {
  return runsAround().includes(run);
}

/** The runs that wait for the present code, innermost last. */
export function runsAround(): readonly object[] {
  return surroundings().map(({ run }) => run);
}

/**
 * Runs code that a run waits for. `code` is the same object at each call, so that it is known whether it is
 * synchronous. At the first call that returns a promise after synchronous ones, the code is followed only to its first
 * `await`.
 */
export function runInside<T>(run: object, work: () => T, code?: object): T {
  const inside: Inside = { run, awaited: true };
  const all = [...surroundings(), inside];
  if (code !== undefined && answersAtOnce.has(code)) {
    const value = settled(inside, () => runNow(all, work));
    if (value instanceof Promise) answersAtOnce.delete(code);
    return value;
  }
  unanswered += 1;
  const value = settled(inside, () => followed.run(all, work), stopFollowing);
  if (code !== undefined && !(value instanceof Promise)) answersAtOnce.add(code);
  return value;
}

function surroundings(): readonly Inside[] {
  const all = present ?? followed.getStore();
  return all === undefined ? [] : all.filter(({ awaited }) => awaited);
}

function runNow<T>(all: readonly Inside[], work: () => T): T {
  const before = present;
  present = all;
  try {
    return work();
  } finally {
    present = before;
  }
}

/** Marks the end of the wait when the run has its result. */
function settled<T>(inside: Inside, work: () => T, then: () => void = () => {}): T {
  const answered = (): void => {
    inside.awaited = false;
    then();
  };
  let value: T | undefined;
  try {
    value = work();
    return value;
  } finally {
    if (value instanceof Promise) value.then(answered, answered);
    else answered();
  }
}

function stopFollowing(): void {
  unanswered -= 1;
  if (unanswered === 0) followed.disable();
}
