interface Following {
  readonly followers: Set<() => void>;
  readonly listener: () => void;
}

const followings = new WeakMap<AbortSignal, Following>();

/**
 * Calls a function when a signal aborts, at once if it has. The answer ends that.
 *
 * However many follow one signal, it has one listener for all of them: a program may give the same signal to a thousand
 * runs, and Node warns of a leak from the eleventh listener on.
 */
export function followAbort(signal: AbortSignal, follow: () => void): () => void {
  if (signal.aborted) {
    follow();
    return () => {};
  }
  const following = followings.get(signal) ?? startFollowing(signal);
  // A function of its own, so that one who follows twice can stop once.
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
