import type { MaybePromise } from "../../session/store-driver.ts";

/**
 * A generator that calls a `RowPort` and yields every promise that it has to wait for. In this way, the same code runs on a synchronous
 * port (`runSync`) and on an asynchronous one (`runAsync`).
 */
export type Coroutine<T> = Generator<Promise<unknown>, T, unknown>;

/** Waits for a promise inside a coroutine, as in `yield* waitFor(port.load(id))`; continues synchronously with a plain value. */
export function* waitFor<T>(reply: MaybePromise<T>): Coroutine<T> {
  return reply instanceof Promise ? ((yield reply) as T) : reply;
}

/** Runs a coroutine to its end without waiting. Throws if its port returns a promise. */
export function runSync<T>(coroutine: Coroutine<T>): T {
  const step = coroutine.next();
  if (step.done === true) return step.value;
  throw new Error("A synchronous store returned a promise.");
}

/** Runs a coroutine and awaits its promises. With a synchronous port, its work is done before this call returns. */
export async function runAsync<T>(coroutine: Coroutine<T>): Promise<T> {
  let step = coroutine.next();
  while (step.done !== true) {
    let answer: unknown;
    try {
      answer = await step.value;
    } catch (error) {
      step = coroutine.throw(error);
      continue;
    }
    step = coroutine.next(answer);
  }
  return step.value;
}
