interface Following {
  readonly followers: Set<() => void>;
  readonly listener: () => void;
}

const followings = new WeakMap<AbortSignal, Following>();

/**
 * Calls a function when a signal aborts; synchronously if it already has. Returns a function that stops this.
 *
 * All followers of a signal share one listener, because a program may pass one signal to a thousand runs, and Node
 * warns of a leak from the eleventh listener on.
 */
export function followAbort(signal: AbortSignal, follow: () => void): () => void {
  if (signal.aborted) {
    follow();
    return () => {};
  }
  const following = followings.get(signal) ?? startFollowing(signal);
  // A new function, so that following twice with the same function can be stopped separately.
  const follower = (): void => follow();
  following.followers.add(follower);
  return () => {
    if (!following.followers.delete(follower) || following.followers.size > 0) return;
    signal.removeEventListener("abort", following.listener);
    followings.delete(signal);
  };
}

function startFollowing(signal: AbortSignal): Following {
  const followers = new Set<() => void>();
  const listener = (): void => {
    followings.delete(signal);
    for (const follower of [...followers]) follower();
  };
  const following = { followers, listener };
  followings.set(signal, following);
  signal.addEventListener("abort", listener, { once: true });
  return following;
}

/** Settles like the promise, or rejects with the signal's reason if that aborts first; the promise is then ignored. */
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
