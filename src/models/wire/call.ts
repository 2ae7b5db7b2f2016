import { ModelError } from "../../agent/model/model-error.ts";

const TIMER_MS_MAX = 2 ** 31 - 1;

/** One call of a provider, which an abort or a silence ends. */
export interface Call {
  /** Goes to the client, so that the connection closes when the call is over. */
  readonly signal: AbortSignal;
  /** Waits for the next thing from the provider. @throws the abort's reason at once, or a `ModelError` after the silence. */
  wait<T>(work: PromiseLike<T>): Promise<T>;
  /** Closes whatever is still open. */
  end(): void;
}

/** Starts a call that ends with the caller's signal, or when the provider says nothing for a while. */
export function startCall(init: {
  readonly provider: string;
  readonly signal: AbortSignal | undefined;
  /** How long that while is; undefined for any. */
  readonly timeoutMs: number | undefined;
}): Call {
  const { provider, signal, timeoutMs } = init;
  signal?.throwIfAborted();
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const onSilence = (): void =>
    controller.abort(new ModelError("timeout", `${provider} said nothing for ${timeoutMs} ms.`, { provider }));
  return {
    signal: controller.signal,
    wait<T>(work: PromiseLike<T>): Promise<T> {
      return new Promise<T>((resolve, reject) => {
        const timer = timeoutMs === undefined ? undefined : setTimeout(onSilence, Math.min(timeoutMs, TIMER_MS_MAX));
        const onStop = (): void => settle(() => reject(controller.signal.reason));
        const settle = (then: () => void): void => {
          clearTimeout(timer);
          controller.signal.removeEventListener("abort", onStop);
          then();
        };
        controller.signal.addEventListener("abort", onStop, { once: true });
        if (controller.signal.aborted) onStop();
        work.then(
          (value) => settle(() => resolve(value)),
          (error: unknown) => settle(() => reject(error)),
        );
      });
    },
    end(): void {
      signal?.removeEventListener("abort", onAbort);
      controller.abort();
    },
  };
}
