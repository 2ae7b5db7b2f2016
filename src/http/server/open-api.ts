import { VERSION } from "../../internal/version.ts";
import { z } from "zod";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { Route } from "./route.ts";
import { components } from "./schema.ts";

const documents = new WeakMap<readonly Route[], { readonly count: number; readonly document: JsonObject }>();

/** The OpenAPI 3.1 document of routes, generated from the schemas that check their requests. */
export function openApiOf(routes: readonly Route[]): JsonObject {
  const known = documents.get(routes);
  if (known?.count === routes.length) return known.document;
  const document = documentOf(routes);
  documents.set(routes, { count: routes.length, document });
  return document;
}

function documentOf(routes: readonly Route[]): JsonObject {
  const paths: Record<string, Record<string, JsonValue>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method]: operationOf(route) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Skein",
      version: VERSION,
      description: "Agent sessions, kept in one durable log.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/", description: "The server that this document comes from." }],
    paths,
    components: {
      schemas: namedSchemas(),
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      responses: {
        Problem: {
          description: "A problem document by RFC 9457.",
          content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
        },
      },
    },
    security: [{ token: [] }],
  };
}

function operationOf(route: Route): JsonObject {
  const responses = Object.entries(route.answers).map(([status, { description, schema, contentType }]) => {
    const type = contentType ?? (schema === undefined ? null : "application/json");
    const media = schema === undefined ? {} : { schema: referenceTo(schema) };
    return [status, { description, ...(type === null ? {} : { content: { [type]: media } }) }];
  });
  const parameters = [...pathParameters(route.path), ...queryParameters(route.query)];
  return {
    operationId: route.operationId,
    summary: route.summary,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...bodyOf(route),
    responses: {
      ...problemsOf(route),
      ...Object.fromEntries(responses),
      default: { $ref: "#/components/responses/Problem" },
    },
    ...(route.open === true ? { security: [] } : {}),
  };
}

/** The error statuses of a route; docs/errors.md lists the codes of each status. */
function problemsOf(route: Route): JsonObject {
  const { path, open, body, bodyType, method, problems = [] } = route;
  const statuses = [
    // An invalid query or path, another site, a URL that is too long, too many requests, an internal error, an unavailable store.
    ...[400, 403, 414, 429, 500, 503],
    ...(open === true ? [] : [401, 409]),
    ...(path.includes(":") || body !== undefined ? [404] : []),
    ...(body === undefined && bodyType === undefined ? [] : [415]),
    // The answer itself may also be too large.
    ...(open === true && method === "get" ? [] : [413]),
    ...problems,
  ];
  return Object.fromEntries(statuses.map((status) => [status, { $ref: "#/components/responses/Problem" }]));
}

function bodyOf(route: Route): JsonObject {
  if (route.bodyType !== undefined) {
    return { requestBody: { required: true, content: { [route.bodyType]: { schema: { type: "string" } } } } };
  }
  if (route.body === undefined) return {};
  const optional = route.body.safeParse({}).success;
  return {
    requestBody: {
      required: !optional,
      content: { "application/json": { schema: referenceTo(route.body) } },
    },
  };
}

function pathParameters(path: string): JsonObject[] {
  return [...path.matchAll(/:(\w+)/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string", minLength: 1, maxLength: 512 },
  }));
}

function queryParameters(query: Route["query"]): JsonObject[] {
  if (!(query instanceof z.ZodObject)) return [];
  return Object.entries(query.shape as Record<string, z.ZodType>).map(([name, schema]) => {
    const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io: "input" });
    return { name, in: "query", required: !schema.safeParse(undefined).success, schema: rest as JsonObject };
  });
}

function referenceTo(schema: z.ZodType): JsonObject {
  return { $ref: `#/components/schemas/${(components.get(schema) as { id: string }).id}` };
}

function namedSchemas(): JsonObject {
  const { schemas } = z.toJSONSchema(components, { io: "input", uri: (id) => `#/components/schemas/${id}` });
  const named = Object.entries(schemas).map(([id, { $schema: _dialect, $id: _id, ...schema }]) => [id, schema]);
  return Object.fromEntries(named) as JsonObject;
}
