import { AsyncLocalStorage } from "node:async_hooks";

/**
 * Fails a call whose response stream has ended without an answer.
 *
 * The SDK's HTTP transport would wait for the answer until the timeout. Here each call tracks the stream of its own request,
 * and fails soon after that stream ends.
 */
export const streamWatch: { fetch: typeof fetch; run<T>(call: (lost: AbortSignal) => Promise<T>): Promise<T> } = {
  fetch: watchedFetch,
  run: runWatched,
};

/** Delay before failing: the SDK may still be parsing the last event when the stream ends. */
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
    // The SDK reports every abort as a timeout, so the real reason is thrown here.
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
        // The SDK reconnects to a stream with event ids, so its end does not mean that no answer will come.
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
