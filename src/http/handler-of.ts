import { checkArgument, isObject } from "../session/check-arguments.ts";
import type { SkeinServer } from "./create-server.ts";

/** Serves some routes of a server under another path, as a handler for any framework with the `fetch` signature. */
export type RoutesHandler = (
  server: Pick<SkeinServer, "fetch">,
  path?: string,
) => (request: Request) => Promise<Response>;

/** The path at which an application has mounted the routes that a request is for. */
const mounts = new WeakMap<Request, string>();

/** The path at which the routes of a request are mounted; null for a request that came without a handler. */
export function mountedAt(request: Request): string | null {
  return mounts.get(request) ?? null;
}

/**
 * Creates a handler for the routes below a path of the server; `call` is the name of its public function. It answers 404
 * outside of its own path.
 */
export function handlerOf(call: string, routes: string): RoutesHandler {
  return (server, path = routes) => {
    const isServer = isObject(server) && typeof server["fetch"] === "function";
    checkArgument(isServer, server, call, "a server, such as createServer makes");
    // With a slash at the end, no request would match.
    const isPath = typeof path === "string" && /^(?:\/.*[^/])?$/s.test(path);
    checkArgument(isPath, path, call, `the path at which it is mounted, such as "${routes}"`);
    return async (request) => {
      const url = new URL(request.url);
      const at = url.pathname;
      if (at !== path && !at.startsWith(`${path}/`)) return new Response(null, { status: 404 });
      url.pathname = routes + at.slice(path.length);
      const rewritten = new Request(url, request);
      mounts.set(rewritten, path);
      return server.fetch(rewritten);
    };
  };
}
