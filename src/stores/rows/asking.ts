/** What a store answers: SQLite at once, a server later. */
export type Reply<T> = T | Promise<T>;

/** Steps of the row engine: they ask a store, and go on with its answer, whether that comes at once or later. */
export type Asking<T> = Generator<Promise<unknown>, T, unknown>;

/** Asks a store, inside of steps. */
export function* ask<T>(reply: Reply<T>): Asking<T> {
  return reply instanceof Promise ? ((yield reply) as T) : reply;
}

/** Runs steps on a store that answers at once. */
export function runNow<T>(steps: Asking<T>): T {
  const step = steps.next();
  if (step.done === true) return step.value;
  throw new Error("A store that answers at once has answered later.");
}

/** Runs steps on any store. On one that answers at once, they are done when this call returns. */
export async function runLater<T>(steps: Asking<T>): Promise<T> {
  let step = steps.next();
  while (step.done !== true) {
    let answer: unknown;
    try {
      answer = await step.value;
    } catch (error) {
      step = steps.throw(error);
      continue;
    }
    step = steps.next(answer);
  }
  return step.value;
}
