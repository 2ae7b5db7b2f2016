import type { SkeinServer } from "./create-server.ts";

/** Some routes of a server as a handler for any framework that serves `fetch`, mounted at a path of its own. */
export type RoutesHandler = (
  server: Pick<SkeinServer, "fetch">,
  path?: string,
) => (request: Request) => Promise<Response>;

/** Makes a handler of the routes below a path of the server. What comes to any other path than its own is not found. */
export function handlerOf(routes: string): RoutesHandler {
  return (server, path = routes) =>
    async (request) => {
      const url = new URL(request.url);
      const at = url.pathname;
      if (at !== path && !at.startsWith(`${path}/`)) return new Response(null, { status: 404 });
      url.pathname = routes + at.slice(path.length);
      return server.fetch(new Request(url, request));
    };
}
