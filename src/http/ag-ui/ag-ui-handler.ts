import type { SkeinServer } from "../create-server.ts";
import { handlerAt } from "../handler-at.ts";

const ROUTES = "/agui";

/**
 * The AG-UI routes of a server as a handler for any framework that serves `fetch`, mounted at a path of its own: an agent
 * is below it by its name.
 */
export function agUiHandler(
  server: Pick<SkeinServer, "fetch">,
  path: string = ROUTES,
): (request: Request) => Promise<Response> {
  return handlerAt(server, { routes: ROUTES, path });
}
