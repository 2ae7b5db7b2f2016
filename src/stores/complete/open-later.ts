/**
 * An iterator that opens another one at its first step and then passes every step on, without a hop of its own.
 *
 * `check` runs before each step; when it throws, the step rejects and the other iterator is let go.
 */
export function openLater<T>(open: () => AsyncIterator<T>, check: () => void = () => {}): AsyncIterator<T> {
  let inner: AsyncIterator<T> | null = null;
  const end = (): Promise<IteratorResult<T>> => {
    const ended = inner?.return?.();
    inner = null;
    return ended ?? Promise.resolve({ done: true, value: undefined });
  };
  return {
    next() {
      try {
        check();
        inner ??= open();
        return inner.next();
      } catch (error) {
        return end().then(
          () => Promise.reject(error),
          () => Promise.reject(error),
        );
      }
    },
    return: end,
  };
}
