import type { Server } from "node:http";
import { serve } from "@hono/node-server";

/** A running application: `user` of a request is its header `x-user`. */
export interface WebApp {
  readonly url: string;
  readonly server: Server;
  close(): Promise<void>;
}

/** Serves Web-standard requests. */
export async function listen(fetch: (request: Request) => Response | Promise<Response>): Promise<WebApp> {
  return new Promise((resolve) => {
    const server = serve({ fetch, port: 0, hostname: "127.0.0.1" }, ({ port }) => {
      const close = (): Promise<void> =>
        new Promise((closed) => {
          (server as Server).closeAllConnections();
          server.close(() => closed());
        });
      resolve({ server: server as Server, url: `http://127.0.0.1:${port}`, close });
    });
  });
}

/** A body whose chunks are produced on demand. */
export function streamOf(chunks: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const iterator = chunks[Symbol.asyncIterator]();
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await iterator.next();
        if (done === true) controller.close();
        else controller.enqueue(new TextEncoder().encode(value));
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    // No chunk is produced before the first read.
    { highWaterMark: 0 },
  );
}
