import { followAbort } from "./follow-abort.ts";

/** What a promise comes to, or the signal's reason if that aborts first; the promise is then left to itself. */
export function untilAborted<T>(promise: PromiseLike<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const unfollow = followAbort(signal, () => reject(signal.reason));
    promise.then(
      (value) => {
        unfollow();
        resolve(value);
      },
      (error) => {
        unfollow();
        reject(error);
      },
    );
  });
}
