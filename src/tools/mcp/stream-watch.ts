import { AsyncLocalStorage } from "node:async_hooks";

/**
 * Ends a call whose answer can no longer come.
 *
 * The SDK's web transport waits for an answer until its time is over, also when the stream that was to bring it has
 * ended. Here each call knows the stream of its own request, and fails soon after that stream ends without an answer.
 */
export const streamWatch: { fetch: typeof fetch; run<T>(call: (lost: AbortSignal) => Promise<T>): Promise<T> } = {
  fetch: watchedFetch,
  run: runWatched,
};

/** A last event may still be on its way through the SDK's parser when the stream ends. */
const GRACE_MS = 1000;

const calls = new AsyncLocalStorage<{ lose(): void }>();

async function runWatched<T>(call: (lost: AbortSignal) => Promise<T>): Promise<T> {
  const lost = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const lose = () => {
    timer ??= setTimeout(() => lost.abort(new Error("the connection broke off before the answer")), GRACE_MS);
  };
  try {
    return await calls.run({ lose }, () => call(lost.signal));
  } catch (error) {
    // The SDK takes every abort for a timeout.
    lost.signal.throwIfAborted();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function watchedFetch(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(input, init);
  const call = calls.getStore();
  const streams = response.headers.get("content-type")?.startsWith("text/event-stream") ?? false;
  if (call === undefined || init?.method !== "POST" || !streams || response.body === null) return response;
  return new Response(watched(response.body, call.lose), response);
}

function watched(body: ReadableStream<Uint8Array>, ended: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  let resumable = false;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        // The SDK takes up a stream with event ids again, so its end is not the end of the answer.
        if (value !== undefined) resumable ||= /(^|\n)id:/.test(Buffer.from(value).toString("latin1"));
        if (!done) return controller.enqueue(value);
        if (!resumable) ended();
        controller.close();
      } catch (error) {
        if (!resumable) ended();
        controller.error(error);
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
