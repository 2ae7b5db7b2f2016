import { AsyncLocalStorage } from "node:async_hooks";

/** Code that a run waits for. */
interface Inside {
  readonly run: object;
  /** False once the run has its answer; what that code left behind may wait for the run. */
  awaited: boolean;
}

/** What the present code is inside of, wherever it waits. */
const followed = new AsyncLocalStorage<readonly Inside[]>();
let unanswered = 0;

/**
 * Code that has always answered at once so far. To follow code through what it waits for makes every promise of the
 * process slower; for code that waits for nothing, a variable tells as much.
 */
const answersAtOnce = new WeakSet<object>();
let present: readonly Inside[] | null = null;

/** Whether the present code is code that the run waits for. */
export function isInside(run: object): boolean {
  return runsAround().includes(run);
}

/** The runs that wait for the present code, the innermost last. */
export function runsAround(): readonly object[] {
  return surroundings().map(({ run }) => run);
}

/**
 * Runs code that a run waits for. `code` is the same object from call to call, so that it is known how it answers; the
 * first time that it does not answer at once after it always did, it is followed no further than to where it waits.
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

/** Notes when the run has its answer. */
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
