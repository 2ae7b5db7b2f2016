import type { ServerResponse } from "node:http";
import { Inject, Injectable, type NestMiddleware } from "@nestjs/common";
import { SessionContext } from "../../lifecycle/session-context.ts";
import { SessionManager } from "../../lifecycle/session-manager.ts";
import { type ExpressMiddleware, expressSession } from "../express/express-session.ts";
import type { NodeRequest } from "../middleware/node-request.ts";
import { SESSION_MODULE_OPTIONS, type SessionModuleOptions } from "./session-module-options.ts";

/** Puts the session of each request into `request.session`: `consumer.apply(SessionMiddleware).forRoutes("{*path}")`. */
export class SessionMiddleware implements NestMiddleware<NodeRequest, ServerResponse> {
  readonly #use: ExpressMiddleware;

  /** Called by Nest, which injects the parameters. */
  constructor(manager: SessionManager, context: SessionContext, { requests = {} }: SessionModuleOptions) {
    this.#use = expressSession({ ...requests, manager, context });
  }

  /** Handles one request. */
  use(request: NodeRequest, response: ServerResponse, next: (error?: unknown) => void): Promise<void> {
    return this.#use(request, response, next);
  }
}

Injectable()(SessionMiddleware);
for (const [index, token] of [SessionManager, SessionContext, SESSION_MODULE_OPTIONS].entries()) {
  Inject(token)(SessionMiddleware, undefined, index);
}
