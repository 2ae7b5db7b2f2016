import type { SkeinServer } from "../create-server.ts";

const ROUTES = "/api/chat";

/**
 * The chat routes of a server as a handler for any framework that serves `fetch`, mounted at a path of its own. What comes
 * to another path is not found there.
 */
export function chatHandler(
  server: Pick<SkeinServer, "fetch">,
  path: string = ROUTES,
): (request: Request) => Promise<Response> {
  return async (request) => {
    const url = new URL(request.url);
    const at = url.pathname;
    if (at !== path && !at.startsWith(`${path}/`)) return new Response(null, { status: 404 });
    url.pathname = ROUTES + at.slice(path.length);
    return server.fetch(new Request(url, request));
  };
}
