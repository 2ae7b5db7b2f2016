import type { Ajv2020 } from "ajv/dist/2020.js";
import type { JsonObject, JsonValue } from "../../src/internal/json.ts";
import type { Operation } from "../http/server-contract.ts";

/** The values of the path parameters of operations. */
export type Ids = Readonly<Record<"session" | "entry" | "checkpoint" | "run" | "question", string>>;

/** A request that is made from a document. */
export interface SurfaceRequest {
  /** The invalid part. */
  readonly what: string;
  readonly path: string;
  readonly body?: JsonValue;
}

/** Values of every kind of JSON, so that there is a wrong one for any schema that does not take everything. */
const ANY: readonly JsonValue[] = [{ wrong: {} }, 7.5, -1, "\u0000", true, [[]], null, ""];

/** Operations whose body another program decides, which may say more than is read of it. */
const LOOSE: readonly string[] = ["runAgUi"];

/** The path of an operation with ids in it; without a query. */
export function pathOf({ path }: Operation, ids: Ids): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(idFor(path, name, ids)));
}

/** Whether an operation names something that is someone's. */
export function namesSomething({ path }: Operation): boolean {
  return path.includes("{");
}

/** A valid body for an operation; null if it has none, or one that is not JSON. */
function bodySchemaOf({ requestBody }: Operation): JsonObject | null {
  return requestBody?.content["application/json"]?.schema ?? null;
}

/** The content type of an operation's body; null if it has none. */
export function bodyTypeOf({ requestBody }: Operation): string | null {
  return requestBody === undefined ? null : (Object.keys(requestBody.content)[0] ?? null);
}

/** Requests whose body has one field of the wrong kind, and one field too many. */
export function wrongBodies(operation: Operation, ids: Ids, ajv: Ajv2020): SurfaceRequest[] {
  const schema = bodySchemaOf(operation);
  if (schema === null) return [];
  const known = resolve(schema, ajv);
  const properties = Object.entries((known["properties"] ?? {}) as Record<string, JsonObject>);
  const right = sampleOf(known, ajv) as JsonObject;
  const path = pathOf(operation, ids);
  const wrong = properties.flatMap(([name, property]) => {
    const value = ANY.find((candidate) => !fits(property, candidate, ajv));
    return value === undefined
      ? []
      : [{ what: `${name} is ${JSON.stringify(value)}`, path, body: { ...right, [name]: value } }];
  });
  const strange = [[], "text", 7].map((body) => ({ what: `the body is ${JSON.stringify(body)}`, path, body }));
  const unknown = { what: "there is a field that nobody knows", path, body: { ...right, strange: 1 } };
  return LOOSE.includes(operation.operationId) ? [...wrong, ...strange] : [...wrong, ...strange, unknown];
}

/** Requests whose query has a value of the wrong type, a repeated one, and an unknown one. */
export function wrongQueries(operation: Operation, ids: Ids): SurfaceRequest[] {
  const path = pathOf(operation, ids);
  const wrong = operation.parameters
    .filter((one) => one.in === "query")
    .flatMap(({ name, schema }) =>
      wrongTexts(schema)
        .map((text) => `${name}=${encodeURIComponent(text)}`)
        .concat(schema["type"] === "array" ? [] : [`${name}=1&${name}=1`]),
    );
  return [...wrong, "strange=1"].map((query) => ({
    what: `the query is ${query.slice(0, 40)}`,
    path: `${path}?${query}`,
  }));
}

/** A body that is right as far as its schema says. */
export function rightBody(operation: Operation, ajv: Ajv2020): JsonValue {
  const schema = bodySchemaOf(operation);
  return schema === null ? {} : sampleOf(resolve(schema, ajv), ajv);
}

function wrongTexts({ type, enum: choices, items, maxLength }: JsonObject): readonly string[] {
  if (type === "integer" || type === "number") return ["x", "1.5", "99999999999999999999", ""];
  if (type === "boolean") return ["maybe", "1"];
  if (type === "array") return wrongTexts(items as JsonObject);
  if (Array.isArray(choices)) return ["strange"];
  return typeof maxLength === "number" ? ["x".repeat(maxLength + 1)] : [];
}

function idFor(path: string, name: string, ids: Ids): string {
  if (name === "entryId") return ids.entry;
  if (name === "runId") return ids.run;
  if (name === "question") return ids.question;
  return path.startsWith("/api/checkpoints") ? ids.checkpoint : ids.session;
}

function resolve(schema: JsonObject, ajv: Ajv2020): JsonObject {
  const { $ref } = schema;
  return typeof $ref === "string" ? (ajv.getSchema(`document${$ref}`)?.schema as JsonObject) : schema;
}

function fits(schema: JsonObject, value: JsonValue, ajv: Ajv2020): boolean {
  const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#', '"$ref":"document#')) as JsonObject;
  return ajv.validate(absolute, value);
}

/** The least that a schema takes. */
function sampleOf(schema: JsonObject, ajv: Ajv2020): JsonValue {
  const known = resolve(schema, ajv);
  const { type, enum: choices, anyOf, properties, required } = known;
  if (Array.isArray(choices)) return choices[0] as JsonValue;
  if (Array.isArray(anyOf)) return sampleOf(anyOf[0] as JsonObject, ajv);
  if (type === "object") {
    const fields = ((required ?? []) as string[]).map((name) => {
      const field = (properties as Record<string, JsonObject>)[name] as JsonObject;
      // The schema of an entry leaves open which types there are.
      return [name, name === "type" ? "custom" : sampleOf(field, ajv)] as const;
    });
    return Object.fromEntries(fields);
  }
  if (type === "array") return known["minItems"] === undefined ? [] : [sampleOf(known["items"] as JsonObject, ajv)];
  if (type === "boolean") return false;
  if (type === "integer" || type === "number") return 1;
  return "x";
}
