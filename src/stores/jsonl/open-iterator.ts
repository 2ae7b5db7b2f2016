import { asStoreError } from "./store-failure.ts";

/**
 * An iterator that is opened at its first step; what goes wrong in one becomes a `SessionError`. Null gives
 * nothing.
 */
export function openIterator<T>(open: () => Promise<AsyncGenerator<T> | null>): AsyncIterableIterator<T> {
  let inner: AsyncGenerator<T> | null = null;
  let opened = false;
  const done: IteratorReturnResult<undefined> = { done: true, value: undefined };
  return {
    async next(): Promise<IteratorResult<T>> {
      try {
        if (!opened) {
          opened = true;
          inner = await open();
        }
        return inner === null ? done : await inner.next();
      } catch (error) {
        inner = null;
        throw asStoreError(error);
      }
    },
    async return(): Promise<IteratorResult<T>> {
      opened = true;
      await inner?.return(undefined);
      inner = null;
      return done;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
