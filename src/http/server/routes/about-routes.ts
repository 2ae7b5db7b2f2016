import { z } from "zod";
import type { AgentInfo, Catalogue, GroupInfo, Me, ModelInfo } from "../../wire.ts";
import { openApiOf } from "../open-api.ts";
import { answer, route, type ServerApp } from "../route.ts";
import { jsonObject, named } from "../schema.ts";
import type { ServerServices } from "../server-services.ts";

const text = z.string();

const health = named<{ readonly status: "ok" | "unavailable" }>(
  "Health",
  z.object({ status: z.enum(["ok", "unavailable"]) }),
);
const me = named<Me>(
  "Me",
  z.object({
    userId: text,
    admin: z.boolean(),
    may: z.object({ approve: z.boolean(), run: z.boolean(), files: z.boolean() }),
  }),
);

const agentInfo = named<AgentInfo>(
  "Agent",
  z.object({ name: text, model: text, tools: z.array(z.object({ name: text, description: text })) }),
);
const modelInfo = named<ModelInfo>("Model", z.object({ id: text, contextWindow: z.number().nullable() }));
const groupInfo = named<GroupInfo>(
  "Group",
  z.object({ name: text, agents: z.array(z.object({ name: text, role: text })) }),
);
const catalogue = named<Catalogue>(
  "Catalogue",
  z.object({
    agents: z.array(agentInfo),
    models: z.array(modelInfo),
    groups: z.array(groupInfo),
    hasPlace: z.boolean(),
  }),
);

/** Adds the routes about the server itself. */
export function mountAbout(app: ServerApp, services: ServerServices): void {
  route(app, {
    method: "get",
    path: "/api/health",
    operationId: "getHealth",
    summary: "Whether the server and its store are available; needs no authentication.",
    open: true,
    answers: {
      200: { description: "The server is available.", schema: health },
      503: { description: "The store is unavailable, or the server is shutting down.", schema: health },
    },
    async handle() {
      const healthy = !services.drain.aborted && (await services.manager.health()).healthy;
      return answer({ status: healthy ? "ok" : "unavailable" }, { status: healthy ? 200 : 503 });
    },
  });
  route(app, {
    method: "get",
    path: "/api/me",
    operationId: "getMe",
    summary: "The authenticated caller and their rights.",
    answers: { 200: { description: "The caller.", schema: me } },
    handle: ({ caller }) => answer(caller),
  });
  route(app, {
    method: "get",
    path: "/api/catalogue",
    operationId: "getCatalogue",
    summary: "The agents, models and groups that this server offers.",
    answers: { 200: { description: "The catalogue.", schema: catalogue } },
    handle: () => answer(catalogueOf(services)),
  });
  route(app, {
    method: "get",
    path: "/openapi.json",
    operationId: "getOpenApi",
    summary: "This document.",
    open: true,
    answers: { 200: { description: "OpenAPI 3.1.", schema: jsonObject } },
    handle: () => answer(openApiOf(app.routes)),
  });
}

function catalogueOf({ agents, groups, modelInfos, placeOf }: ServerServices): Catalogue {
  return {
    agents: [...agents].map(([name, { model, tools = [] }]) => ({
      name,
      model: `${model.provider}/${model.id}`,
      tools: tools.map(({ schema }) => ({ name: schema.name, description: schema.description })),
    })),
    models: modelInfos,
    groups: [...groups].map(([name, group]) => ({ name, agents: group.members })),
    hasPlace: placeOf(null) !== null,
  };
}
