import { handlerOf, type RoutesHandler } from "../handler-of.ts";

/** The AG-UI routes of a server, mounted at a path of its own: an agent is below it by its name. */
export const agUiHandler: RoutesHandler = handlerOf("agUiHandler", "/agui");
