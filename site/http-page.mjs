import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../scripts/run.mjs";

/**
 * A JSON schema, as far as the page shows it.
 * @typedef {object} Schema
 * @property {string} [$ref]
 * @property {string} [title]
 * @property {string} [description]
 * @property {string | string[]} [type]
 * @property {unknown[]} [enum]
 * @property {unknown} [const]
 * @property {Schema[]} [anyOf]
 * @property {Schema[]} [oneOf]
 * @property {Schema[]} [allOf]
 * @property {Schema | boolean} [items]
 * @property {Record<string, Schema>} [properties]
 * @property {string[]} [required]
 * @property {Schema | boolean} [additionalProperties]
 */
/** @typedef {Record<string, { schema?: Schema }>} Media */
/**
 * @typedef {object} Operation
 * @property {string} operationId
 * @property {string} summary
 * @property {string[]} [tags]
 * @property {{ name: string, in: string, required?: boolean, description?: string, schema: Schema }[]} [parameters]
 * @property {{ required?: boolean, content: Media }} [requestBody]
 * @property {Record<string, { $ref?: string, description?: string, content?: Media }>} responses
 */
/**
 * @typedef {object} OpenApiDocument
 * @property {Record<string, Record<string, Operation>>} paths
 * @property {{ schemas: Record<string, Schema> }} components
 */

/**
 * The OpenAPI document of the built package's server.
 * @returns {Promise<OpenApiDocument>}
 */
export async function readOpenApi() {
  /** @param {string} path */
  const load = (path) => import(pathToFileURL(join(root, "dist", path)).href);
  const { createServer } = await load("http/index.js");
  const { openMemoryStore } = await load("stores/memory/index.js");
  const store = openMemoryStore();
  const server = await createServer({ store });
  try {
    return await (await server.fetch(new Request("http://localhost/openapi.json"))).json();
  } finally {
    await server.close();
    await store.close();
  }
}

/**
 * The page of the HTTP reference: all operations, then all schemas.
 * @param {OpenApiDocument} document
 * @returns {import("./pages.mjs").Page}
 */
export function httpPage({ paths, components }) {
  /** @type {Map<string, string[]>} */
  const groups = new Map();
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const group = operation.tags?.[0] ?? `\`${path.split("/").slice(0, 3).join("/")}\``;
      groups.set(group, [...(groups.get(group) ?? []), operationText(method, path, operation)]);
    }
  }
  const text = [
    "# HTTP reference",
    "The routes of `skein serve` and `createServer`, generated from their [OpenAPI document](/openapi.json). Every error is a [`Problem`](#Problem); its codes are in [errors](docs/errors.md), and how to sign in is in the guide to [the server](docs/guides/server.md).",
    ...[...groups].flatMap(([group, operations]) => [`## ${group}`, ...operations]),
    "## Schemas",
    ...Object.entries(components.schemas).map(([name, schema]) => schemaText(name, schema)),
  ];
  return { path: "http.md", text: `${text.join("\n\n")}\n` };
}

/** @type {(method: string, path: string, operation: Operation) => string} */
function operationText(method, path, { operationId, summary, parameters = [], requestBody, responses }) {
  const lines = parameters.map(
    ({ name, in: where, required, schema, description = "" }) =>
      `- \`${name}\` in the ${where}${required ? "" : ", optional"}: ${typeText(schema)}${description && `, ${description}`}`,
  );
  if (requestBody) lines.push(`- body${requestBody.required ? "" : ", optional"}: ${mediaText(requestBody.content)}`);
  const refused = [];
  for (const [status, { $ref, description, content = {} }] of Object.entries(responses)) {
    if ($ref !== undefined) refused.push(status);
    else lines.push(`- answers ${status}: ${description} ${mediaText(content)}`.trimEnd());
  }
  lines.push(`- errors:  ${refused.filter((status) => status !== "default").join(", ")}`);
  return [`### \`${method.toUpperCase()} ${path}\` {#${operationId}}`, summary, lines.join("\n")].join("\n\n");
}

/** @param {Media} media */
function mediaText(media) {
  const texts = Object.entries(media).map(([type, { schema }]) => {
    const shown = schema === undefined ? "" : typeText(schema);
    return type === "application/json" ? shown : `\`${type}\` ${shown}`.trimEnd();
  });
  return texts.join(" or ");
}

/**
 * A type as text: a link to its schema, or the type itself.
 * @param {Schema} schema
 */
function typeText(schema) {
  return schema.$ref === undefined ? `\`${typeOf(schema)}\`` : `[\`${nameOf(schema.$ref)}\`](#${nameOf(schema.$ref)})`;
}

/** @type {(name: string, schema: Schema) => string} */
function schemaText(name, schema) {
  const used = [...JSON.stringify(schema).matchAll(/"\$ref":"([^"]+)"/g)].map(([, ref = ""]) => nameOf(ref));
  const links = [...new Set(used)].map((each) => `[\`${each}\`](#${each})`);
  return [
    `### ${name} {#${name}}`,
    ...(schema.description === undefined ? [] : [schema.description]),
    `\`\`\`ts\ntype ${name} = ${typeOf(schema)}\n\`\`\``,
    ...(links.length === 0 ? [] : [`See ${links.join(", ")}.`]),
  ].join("\n\n");
}

/**
 * A schema as a TypeScript type.
 * @param {Schema | boolean} schema
 * @param {string} [indent]
 * @returns {string}
 */
function typeOf(schema, indent = "") {
  if (typeof schema === "boolean") return schema ? "unknown" : "never";
  const { $ref, type, anyOf = schema.oneOf, allOf, items, properties, required = [], additionalProperties } = schema;
  if ($ref !== undefined) return nameOf($ref);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if ("const" in schema) return JSON.stringify(schema.const);
  // A union with many members is printed on several lines.
  if (anyOf) return anyOf.map((each) => typeOf(each, indent)).join(anyOf.length > 6 ? `\n${indent}  | ` : " | ");
  if (allOf) return allOf.map((each) => typeOf(each, indent)).join(" & ");
  if (Array.isArray(type)) return type.map((each) => typeOf({ ...schema, type: each }, indent)).join(" | ");
  if (type === "array") return `Array<${typeOf(items ?? {}, indent)}>`;
  if (properties) {
    const inner = `${indent}  `;
    const fields = Object.entries(properties).map(
      ([name, each]) => `${inner}${name}${required.includes(name) ? "" : "?"}: ${typeOf(each, inner)};`,
    );
    return `{\n${fields.join("\n")}\n${indent}}`;
  }
  if (type === "object" && additionalProperties !== undefined)
    return `Record<string, ${typeOf(additionalProperties, indent)}>`;
  return type ?? "unknown";
}

/** @param {string} reference */
function nameOf(reference) {
  return reference.slice(reference.lastIndexOf("/") + 1);
}
