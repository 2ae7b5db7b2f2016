import { handlerOf, type RoutesHandler } from "../handler-of.ts";

/** The chat routes of a server as a handler for any framework that serves `fetch`, mounted at a path of its own. */
export const chatHandler: RoutesHandler = handlerOf("chatHandler", "/api/chat");
