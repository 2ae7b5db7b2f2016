import { readFileSync } from "node:fs";
import { createConfig, lintFromString } from "@redocly/openapi-core";
import { Ajv2020 } from "ajv/dist/2020.js";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createAgent } from "../../src/agent/agent.ts";
import { encodeSegment } from "../../src/http/path-segment.ts";
import type { JsonObject, JsonValue } from "../../src/internal/json.ts";
import { scripted } from "../../src/models/index.ts";
import { isKnownType } from "../../src/session/log/entry.ts";
import { entryRules, messageRules } from "../../src/session/log/entry-check.ts";
import { type Contract, type Operation, readContract } from "./server-contract.ts";
import { startTestServer, type TestServer } from "./server-support.ts";

let server: TestServer;
let api: Contract;
beforeAll(async () => {
  const agents = [createAgent({ name: "helper", prompt: "Help.", model: scripted([]), retry: { attempts: 1 } })];
  server = await startTestServer({ agents, limits: { bodyBytesMax: 64 * 1024 } });
  api = await readContract(server);
});
afterAll(async () => server[Symbol.asyncDispose]());

test("the document is OpenAPI 3.1: operations have unique names, and every reference resolves", () => {
  const { document, operations } = api;
  expect(document.openapi).toBe("3.1.0");
  expect(document.info).toMatchObject({ title: expect.any(String), version: expect.any(String) });
  const names = operations.map(({ operationId }) => operationId);
  expect(new Set(names).size).toBe(names.length);
  for (const { operationId, path, parameters, responses } of operations) {
    const named = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1]);
    expect(
      parameters.filter((one) => one.in === "path").map(({ name }) => name),
      operationId,
    ).toEqual(named);
    expect(
      Object.keys(responses).some((status) => /^2\d\d$/.test(status)),
      operationId,
    ).toBe(true);
    expect(responses.default).toEqual({ $ref: "#/components/responses/Problem" });
  }
  const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] as string);
  expect(references.length).toBeGreaterThan(50);
  for (const reference of references) {
    const found = reference
      .replace(/^#\//, "")
      .split("/")
      .reduce<JsonValue | undefined>((at, key) => (at as JsonObject | undefined)?.[key], document);
    expect(found, reference).toBeDefined();
  }
});

test("a linter finds no problem in the document", async () => {
  const config = await createConfig({ extends: ["recommended"] });
  const problems = await lintFromString({ source: JSON.stringify(api.document), config });
  const told = problems.map(
    ({ severity, ruleId, message, location: [at] }) => `${severity} ${ruleId} at ${at?.pointer}: ${message}`,
  );
  expect(told).toEqual([]);
});

test("the document has the types of entries and messages, and describes every entry of a stored log", () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(api.document, "document");
  const check = ajv.compile({ $ref: "document#/components/schemas/Entry" });
  const { schemas } = api.document.components as unknown as { schemas: Record<string, Variants> };
  expect(Object.keys(schemas.Entry?.discriminator?.mapping ?? {})).toEqual(Object.keys(entryRules));
  expect(Object.keys(schemas.Message?.discriminator?.mapping ?? {})).toEqual(Object.keys(messageRules));
  const [, ...log] = readFileSync("test/golden/session-v1.jsonl", "utf8").trim().split("\n");
  const parsed = log.flatMap<JsonObject>((line) => JSON.parse(line) as JsonObject);
  const entries = parsed.filter(({ type }) => isKnownType(String(type)));
  expect(entries.length).toBeGreaterThan(20);
  for (const [seq, entry] of entries.entries()) {
    expect(check({ ...entry, seq }), `${JSON.stringify(entry)}: ${ajv.errorsText(check.errors)}`).toBe(true);
  }
  const stamp = { id: "e", parentId: null, timestamp: "2024-01-01T00:00:00.000Z", seq: 0 };
  const said = (message: object) => check({ ...stamp, type: "message", message });
  expect(said({ role: "assistant", content: null, toolCalls: [{ id: "1", name: "look", arguments: "{}" }] })).toBe(
    true,
  );
  expect(said({ role: "assistant", content: null, toolCalls: [{ id: "1" }] })).toBe(false);
  expect(said({ role: "tool", content: "Done." })).toBe(false);
  expect(said({ role: "user", content: null })).toBe(false);
  expect(check({ ...stamp, type: "status", status: "asleep" })).toBe(false);
});

interface Variants {
  readonly discriminator?: { readonly mapping: Readonly<Record<string, string>> };
}

test("the document has exactly the routes of the server's specification", () => {
  const routes = api.operations.map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, ":")}`);
  const session = (method: string, ...paths: readonly string[]) =>
    paths.map((path) => `${method} /api/sessions/:${path}`);
  expect(routes.sort()).toEqual(
    [
      ...["health", "me", "catalogue", "sessions", "search", "analytics", "analytics/calls", "runs", "fleet"].map(
        (path) => `GET /api/${path}`,
      ),
      ...["sessions", "import"].map((path) => `POST /api/${path}`),
      ...session("GET", "", "/state", "/entries", "/entries/:", "/path", "/tree", "/context", "/compaction", "/forks"),
      ...session(
        "GET",
        "/comparison",
        "/checkpoints",
        "/timeline",
        "/analytics",
        "/cache",
        "/lineage",
        "/export",
        "/watch",
        "/runs",
        "/runs/:",
        "/runs/:/events",
      ),
      ...session("POST", "/runs/:/cancel", "/questions/:", "/steer", "/follow-ups"),
      ...session("POST", "/undelete", "/suspend", "/resume", "/close", "/entries", "/turns", "/leaf", "/prune"),
      ...session("POST", "/compact", "/undo-compaction", "/forks", "/merges", "/checkpoints", "/runs", "/recover"),
      ...session("POST", "/edits", "/edits/preview", "/undo-edit"),
      ...session("PATCH", ""),
      ...session("DELETE", ""),
      ...session("PUT", "/labels/:"),
      ...["POST /api/chat", "GET /api/chat/:", "GET /api/chat/:/stream"],
      ...["POST /api/chat/:/select", "POST /api/chat/:/stop"],
      ...[
        "POST /api/sessions/:/blobs",
        "GET /api/sessions/:/blobs/:",
        "GET /api/chat/:/blobs/:",
        "GET /agui/:/blobs/:",
      ],
      "POST /agui/:",
      "POST /mcp",
      ...["GET /api/programs", "POST /api/programs/import"],
      ...["DELETE /api/users/:", "GET /api/users/:/budget", "GET /api/users/:/export"],
      "GET /api/checkpoints/:",
      "DELETE /api/checkpoints/:",
      "POST /api/checkpoints/:/restore",
      "GET /api/checkpoints/:/diff/:",
      "GET /openapi.json",
    ].sort(),
  );
});

test("every error code of the server is in the documentation, and no other", () => {
  const declared =
    /type HttpErrorCode =([\s\S]*?);/.exec(readFileSync("src/http/server/http-error.ts", "utf8"))?.[1] ?? "";
  const codes = [...declared.matchAll(/"([A-Z_]+)"/g)].map((match) => match[1]);
  const documented = [...readFileSync("docs/errors.md", "utf8").matchAll(/^\| \d{3} \| `([A-Z_]+)`/gm)].map(
    (match) => match[1],
  );
  expect(codes.length).toBeGreaterThan(15);
  expect(documented.sort()).toEqual(codes.sort());
});

test("no request generated from the document crashes the server, and every refusal has a problem document", async () => {
  const made = await api.call("POST", "/api/sessions", {});
  const sessionId: string = made.body.header.id;
  await api.call("POST", `/api/sessions/${sessionId}/turns`, { turnId: "turn", role: "user", content: "Hello" });
  const checkpoint = await api.call("POST", `/api/sessions/${sessionId}/checkpoints`, {});
  const known = [sessionId, "turn", checkpoint.body.id as string];
  const request = fc.constantFrom(...api.operations).chain((operation) => requestOf(operation, api.document, known));
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, body, headers }) => {
      const { status } = await api.call(method, path, body, { headers });
      expect(status).not.toBe(500);
    }),
    { numRuns: 300 },
  );
  expect(server.log.filter(({ level, status }) => level === "error" && status === 500)).toEqual([]);
  expect((await api.call("GET", `/api/sessions?limit=1`)).status).toBe(200);
});

interface DrawnRequest {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
}

function requestOf(operation: Operation, document: JsonObject, known: readonly string[]): fc.Arbitrary<DrawnRequest> {
  const { method, path, parameters, requestBody } = operation;
  const segment = fc.oneof({ weight: 3, arbitrary: fc.constantFrom(...known) }, hostileText()).map(encodeSegment);
  const value = (schema: JsonObject) => fc.oneof(drawn(schema, document), fc.jsonValue()).map(textOfQuery);
  const query = parameters.filter((one) => one.in === "query");
  const [[type, media] = ["application/json", { schema: {} }]] = Object.entries(requestBody?.content ?? {});
  return fc.record({
    method: fc.constant(method),
    path: fc
      .tuple(
        fc.array(segment, { minLength: 3, maxLength: 3 }),
        fc.tuple(
          ...query.map(({ name, schema }) =>
            fc.option(value(schema).map((text) => `${name}=${encodeURIComponent(text)}`)),
          ),
        ),
      )
      .map(([segments, pairs]) => {
        let next = 0;
        const filled = path.replace(/\{\w+\}/g, () => segments[next++] ?? "x");
        return `${filled}?${pairs.filter((pair) => pair !== null).join("&")}`;
      }),
    body: fc.oneof({ weight: 4, arbitrary: drawn(media.schema, document) }, fc.jsonValue(), hostileText()),
    headers: fc.constant({ "content-type": type }),
  });
}

function textOfQuery(value: unknown): string {
  // Half of a surrogate pair has no percent-encoding.
  return Buffer.from((typeof value === "string" ? value : JSON.stringify(value)).slice(0, 500)).toString();
}

function hostileText(): fc.Arbitrary<string> {
  const chosen = fc.constantFrom(
    "__proto__",
    "..",
    ".",
    "=",
    "a/b",
    "\u0000",
    "%",
    "x".repeat(600),
    "😀",
    "constructor",
  );
  return fc.oneof(chosen, fc.string({ minLength: 1, maxLength: 20 }));
}

/** Values that a schema of the document allows, for the kinds of schemas that these tests need. */
function drawn(schema: JsonObject, document: JsonObject): fc.Arbitrary<unknown> {
  const { $ref, anyOf, type } = schema as { $ref?: string; anyOf?: JsonObject[]; type?: string | string[] };
  if ($ref !== undefined) {
    const { schemas } = document.components as { schemas: Record<string, JsonObject> };
    return drawn(schemas[$ref.split("/").at(-1) as string] as JsonObject, document);
  }
  if (anyOf !== undefined) return fc.oneof(...anyOf.map((one) => drawn(one, document)));
  if (Array.isArray(schema.enum)) return fc.constantFrom(...(schema.enum as JsonValue[]));
  if ("const" in schema) return fc.constant(schema.const);
  if (Array.isArray(type)) return fc.oneof(...type.map((one) => drawn({ ...schema, type: one }, document)));
  switch (type) {
    case "string":
      return hostileText();
    case "integer":
    case "number":
      return fc.oneof(fc.integer({ min: -2, max: 1002 }), fc.maxSafeInteger());
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "array":
      return fc.array(drawn((schema.items ?? {}) as JsonObject, document), { maxLength: 3 });
    case "object":
      return drawnObject(schema, document);
    default:
      return fc.jsonValue();
  }
}

function drawnObject(schema: JsonObject, document: JsonObject): fc.Arbitrary<unknown> {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, JsonObject>);
  const required = (schema.required ?? []) as readonly string[];
  if (properties.length === 0) return fc.dictionary(hostileText(), fc.jsonValue(), { maxKeys: 3 });
  const model = Object.fromEntries(properties.map(([name, one]) => [name, drawn(one, document)]));
  return fc.record(model, { requiredKeys: [...required] });
}
