import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { JsonObject } from "../../src/internal/json.ts";
import type { Answer, CallOptions, TestServer } from "./server-support.ts";

/** The fields of an OpenAPI operation that tests read. */
export interface Operation {
  readonly operationId: string;
  readonly method: string;
  /** `/api/sessions/{id}`. */
  readonly path: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: JsonObject }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonObject }>> };
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { schema?: JsonObject }>> }>
  >;
}

/**
 * The answer of an operation for an id that belongs to another user, or does not exist. Exceptions: user routes require an
 * administrator anyway, and a missing chat has no stream to join.
 */
export function statusOfForeign({ operationId, path }: Operation): number {
  if (operationId === "joinChat") return 204;
  return path.startsWith("/api/users/") ? 403 : 404;
}

/** The OpenAPI document of a server, and checks of answers against it. */
export interface Contract {
  readonly document: JsonObject;
  readonly operations: readonly Operation[];
  /** The operations that were called successfully so far. */
  readonly seen: ReadonlySet<string>;
  /** The same as the server's own `call`; an answer that does not match the document fails the test. */
  call(method: string, path: string, body?: unknown, options?: CallOptions): Promise<Answer>;
}

/** Reads the OpenAPI document of a server. */
export async function readContract(server: TestServer): Promise<Contract> {
  const { body: document } = await server.call("GET", "/openapi.json");
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(document, "document");
  const operations = operationsOf(document);
  const seen = new Set<string>();
  const problem = ajv.compile({ $ref: "document#/components/schemas/Problem" });
  return {
    document,
    operations,
    seen,
    async call(method, path, body, options) {
      const answer = await server.call(method, path, body, options);
      const operation = operations.find((one) => one.method === method && matches(one.path, path));
      if (answer.status >= 400 && !isRpcError(answer, operation)) checkProblem(answer, problem);
      else if (answer.status >= 400) return answer;
      else checkAnswer(answer, operation, ajv);
      if (operation !== undefined && answer.status < 300) seen.add(operation.operationId);
      return answer;
    },
  };
}

function operationsOf(document: { readonly paths: Readonly<Record<string, JsonObject>> }): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, operation]) =>
        ({ parameters: [], ...(operation as object), method: method.toUpperCase(), path }) as unknown as Operation,
    ),
  );
}

function matches(template: string, path: string): boolean {
  const segments = (path.split("?")[0] as string).split("/");
  const names = template.split("/");
  return names.length === segments.length && names.every((name, i) => name.startsWith("{") || name === segments[i]);
}

/** Whether a client of the Model Context Protocol was refused as that protocol says: with an error of JSON-RPC. */
function isRpcError({ body }: Answer, operation: Operation | undefined): boolean {
  return operation?.operationId === "callMcp" && body?.jsonrpc === "2.0" && typeof body.error?.message === "string";
}

function checkProblem(answer: Answer, problem: ValidateFunction): void {
  const type = answer.headers.get("content-type");
  if (type !== "application/problem+json") throw new Error(`A refusal came as ${type}: ${answer.text}`);
  if (!problem(answer.body)) throw new Error(`Not a problem document: ${answer.text}`);
  const { status } = answer.body as { status: number };
  if (status !== answer.status) throw new Error(`It says ${status}, and is ${answer.status}.`);
}

function checkAnswer(answer: Answer, operation: Operation | undefined, ajv: Ajv2020): void {
  const declared = operation?.responses[String(answer.status)];
  if (operation === undefined || declared === undefined) {
    throw new Error(`${answer.status} of ${operation?.operationId} is not documented.`);
  }
  const reference = declared.content?.["application/json"]?.schema?.$ref;
  if (typeof reference !== "string" || answer.body === null) return;
  const check = ajv.getSchema(`document${reference}`) ?? ajv.compile({ $ref: `document${reference}` });
  if (!check(answer.body))
    throw new Error(`${operation.operationId}: ${ajv.errorsText(check.errors)} in ${answer.text}`);
}
