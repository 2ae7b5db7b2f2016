import type { SkeinServer } from "../create-server.ts";
import { handlerAt } from "../handler-at.ts";

const ROUTES = "/api/chat";

/**
 * The chat routes of a server as a handler for any framework that serves `fetch`, mounted at a path of its own. What comes
 * to another path is not found there.
 */
export function chatHandler(
  server: Pick<SkeinServer, "fetch">,
  path: string = ROUTES,
): (request: Request) => Promise<Response> {
  return handlerAt(server, { routes: ROUTES, path });
}
