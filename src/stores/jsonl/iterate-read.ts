import type { Entry } from "../../session/entry.ts";
import { giveTurn } from "./read-lines.ts";
import { asStoreError } from "./store-failure.ts";

/** The entries of a read that is opened at its first step; what goes wrong in a step becomes a `SessionError`. */
export function iterateRead(open: () => Promise<Generator<Entry | null> | null>): AsyncIterableIterator<Entry> {
  let inner: Generator<Entry | null> | null | undefined;
  const step = (): Promise<IteratorResult<Entry>> => {
    try {
      const result = inner?.next();
      if (result === undefined || result.done === true) return Promise.resolve({ done: true, value: undefined });
      if (result.value === null) return giveTurn().then(step);
      return Promise.resolve(result as IteratorResult<Entry>);
    } catch (error) {
      return Promise.reject(asStoreError(error));
    }
  };
  return {
    next: () =>
      inner !== undefined
        ? step()
        : open().then((opened) => {
            inner = opened;
            return step();
          }),
    async return() {
      inner?.return(undefined);
      inner = null;
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
