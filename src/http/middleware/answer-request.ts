import type { BoundRequest } from "./request-sessions.ts";

/**
 * Returns the response with the headers that name the session. The session stays bound until the body is read, cancelled or
 * fails.
 */
export function answerRequest(bound: BoundRequest, request: Request, response: Response): Response {
  // The headers of some responses are immutable.
  const headers = new Headers(response.headers);
  addHeaders(headers, bound);
  const { body, status, statusText } = response;
  if (!bound.isBound) return new Response(body, { status, statusText, headers });
  // Some servers neither read nor cancel the answer to a client that has disconnected.
  if (body === null || request.signal.aborted) bound.end();
  return new Response(body === null ? null : boundBody(body, bound), { status, statusText, headers });
}

/** Starts the answer: adds the headers that name the session. */
export function addHeaders(headers: Headers, bound: BoundRequest): void {
  for (const [name, value] of bound.answer()) {
    if (name === "Set-Cookie") headers.append(name, value);
    else headers.set(name, value);
  }
}

/**
 * The same bytes. The code that produces them runs with the session bound, until the last byte or until the stream is cancelled.
 */
function boundBody(body: ReadableStream<Uint8Array>, bound: BoundRequest): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          const { done, value } = await bound.run(() => reader.read());
          if (!done) return controller.enqueue(value);
          controller.close();
        } catch (error) {
          controller.error(error);
        }
        bound.end();
      },
      cancel: async (reason) => {
        try {
          await bound.run(() => reader.cancel(reason));
        } finally {
          bound.end();
        }
      },
    },
    { highWaterMark: 0 },
  );
}
