import { z } from "zod";
import { answerMcpRequest } from "../../../mcp-server/mcp-server.ts";
import type { StorageAccount } from "../../../mcp-server/change-session.ts";
import { SessionScope } from "../../../mcp-server/session-scope.ts";
import { sessionTools } from "../../../mcp-server/session-tools.ts";
import { namedPath } from "../../../stores/named-path.ts";
import { answerText, route, type ServerApp } from "../route.ts";
import { named, queryFlag, queryList } from "../schema.ts";
import type { Caller, ServerServices } from "../server-services.ts";

const directory = z.string().min(1).max(4096);

const message = named<object>("McpMessage", z.looseObject({ jsonrpc: z.literal("2.0") }));

/** Adds the route that a client of the Model Context Protocol calls, to search and read the caller's sessions. */
export function mountMcp(app: ServerApp, services: ServerServices): void {
  route(app, {
    method: "post",
    path: "/mcp",
    operationId: "callMcp",
    summary:
      "An MCP server (Streamable HTTP, without sessions of its own) with tools that search and read sessions; with write=true, also tools that fork and label them.",
    query: z.strictObject({
      write: queryFlag.optional(),
      directory: directory.optional(),
      exclude: queryList(directory).optional(),
    }),
    body: message,
    heavy: true,
    frees: true,
    answers: {
      200: { description: "The answer, as JSON-RPC.", schema: message },
      202: { description: "A notification was accepted." },
    },
    async handle({ query, body, caller, request }) {
      const scope = new SessionScope({
        manager: services.manager,
        actor: caller,
        directory: query.directory === undefined ? null : namedPath(query.directory),
        excluded: (query.exclude ?? []).map(namedPath),
      });
      const write = { account: accountOf(services, caller), handOff: null };
      const { report } = services;
      const response = await answerMcpRequest(sessionTools(scope, query.write === true ? write : null), request, {
        body,
        report,
      });
      return answerText(await response.text(), response);
    },
  });
}

/** Counts what the caller stores by a tool, as the routes for forks and labels do. */
function accountOf({ storage }: ServerServices, { userId }: Caller): StorageAccount {
  return {
    beforeFork: () => storage.addSession(userId),
    afterFork: (sessionId) => storage.addLog(userId, sessionId),
    async beforeLabel(bytes) {
      await storage.checkBytes(userId, bytes);
      storage.addBytes(userId, bytes);
    },
  };
}
