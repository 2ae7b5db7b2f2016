import { ModelError } from "../../agent/model/model-error.ts";

const TIMER_MS_MAX = 2 ** 31 - 1;

/** One call to a provider, ended by an abort or a timeout. */
export interface Call {
  /** For the client: aborts when the call ends, so that the connection closes. */
  readonly signal: AbortSignal;
  /** Waits for the provider's next response. @throws the abort's reason without delay, or a `ModelError` after the timeout. */
  wait<T>(work: PromiseLike<T>): Promise<T>;
  /** Closes the connection if it is still open. */
  end(): void;
}

/** Starts a call that ends with the caller's signal, or when the provider sends nothing for `timeoutMs`. */
export function startCall(init: {
  readonly provider: string;
  readonly signal: AbortSignal | undefined;
  /** Undefined for no timeout. */
  readonly timeoutMs: number | undefined;
}): Call {
  const { provider, signal, timeoutMs } = init;
  signal?.throwIfAborted();
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const onSilence = (): void =>
    controller.abort(new ModelError("timeout", `${provider} sent nothing for ${timeoutMs} ms.`, { provider }));
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
