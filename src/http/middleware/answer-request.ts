import type { BoundRequest } from "./request-sessions.ts";

/** The response with the headers that name the session, which stays bound until the body was read, dropped or failed. */
export function answerRequest(bound: BoundRequest, request: Request, response: Response): Response {
  // Those of some responses cannot be changed.
  const headers = new Headers(response.headers);
  addHeaders(headers, bound);
  const { body, status, statusText } = response;
  if (!bound.isBound) return new Response(body, { status, statusText, headers });
  // Not every server reads, or drops, the answer to a client that has left.
  if (body === null || request.signal.aborted) bound.end();
  return new Response(body === null ? null : boundBody(body, bound), { status, statusText, headers });
}

/** Begins the answer: adds the headers that name the session. */
export function addHeaders(headers: Headers, bound: BoundRequest): void {
  for (const [name, value] of bound.answer()) {
    if (name === "Set-Cookie") headers.append(name, value);
    else headers.set(name, value);
  }
}

/** The same bytes; whoever makes them finds the session bound, until the last one or until nobody wants more. */
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
