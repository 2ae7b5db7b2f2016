import type { SkeinServer } from "./create-server.ts";

/** Some routes of a server, mounted at another path. What comes to any other path is not found. */
export function handlerAt(
  server: Pick<SkeinServer, "fetch">,
  { routes, path }: { readonly routes: string; readonly path: string },
): (request: Request) => Promise<Response> {
  return async (request) => {
    const url = new URL(request.url);
    const at = url.pathname;
    if (at !== path && !at.startsWith(`${path}/`)) return new Response(null, { status: 404 });
    url.pathname = routes + at.slice(path.length);
    return server.fetch(new Request(url, request));
  };
}
