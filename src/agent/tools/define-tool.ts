import { defined } from "../../internal/defined.ts";
import { copyJson, type JsonObject, NotJson } from "../../internal/json.ts";
import { SessionError, show } from "../../session/errors.ts";
import { checkJsonSchema } from "../schema/json-schema.ts";
import { findSchemaProblem } from "../schema/json-schema-definition.ts";
import { isKeyed } from "../schema/json-schema-reference.ts";
import type { FromJsonSchema } from "../schema/json-schema-type.ts";
import { checkStandardSchema, isStandardSchema, jsonSchemaOf, type StandardSchema } from "../schema/standard-schema.ts";
import type { CheckedArguments, Tool, ToolContext } from "./tool.ts";
import { isToolEffects, type ToolEffects } from "./tool-effects.ts";

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const TIMEOUT_MS_MAX = 2 ** 31 - 1;
const OLD_ZOD = "has a schema of a zod that gives no JSON Schema; make it with zod 4.2 or later, or give JSON Schema";

/** How a tool's arguments are described: JSON Schema, or a schema of any library that follows Standard Schema. */
export type ToolParameters = JsonObject | StandardSchema;

/** What `execute` gets for such parameters: a Standard Schema's output, or what a literal JSON Schema accepts. */
export type ToolArguments<S> = S extends StandardSchema<infer _Input, infer Output> ? Output : FromJsonSchema<S>;

/** A tool as it is written down; `defineTool` checks it. */
export interface ToolDefinition<S extends ToolParameters> {
  /** Letters, digits, `_` and `-`, at most 64. */
  readonly name: string;
  /** What the tool does and when to use it, for the model. */
  readonly description: string;
  readonly parameters: S;
  /** What the model is told of the parameters, for a Standard Schema that cannot say it itself. */
  readonly jsonSchema?: JsonObject;
  /** Does the work. What it returns or throws goes to the model. */
  execute(args: ToolArguments<S>, context: ToolContext): unknown;
  /** Calls with an equal key run one after another, in call order; null is a key of no other call. */
  resourceKey?(args: ToolArguments<S>): string | null;
  /** Runs alone: after all calls before it, and before all calls after it. */
  readonly exclusive?: boolean;
  /** Running it again does no harm, so that a recovered run may do so. */
  readonly idempotent?: boolean;
  /** What its calls can do: only look, change files or other data, or anything (default `commands`). */
  readonly effects?: ToolEffects;
  /** It acts in the session's sandbox and nowhere else, so that whoever is asked is told what can be reached from there. */
  readonly sandboxed?: boolean;
  /** Whether a person must agree before it runs, whatever else runs unasked. */
  readonly needsApproval?: boolean | ((args: ToolArguments<S>) => boolean | Promise<boolean>);
  readonly timeoutMs?: number;
}

/**
 * Makes a tool that models can call.
 *
 * Arguments are checked before `execute` sees them; what does not fit goes back to the model with the path and the
 * reason. Of a Standard Schema, `execute` gets the output, with defaults and conversions applied.
 *
 * @example
 * const findOrder = defineTool({
 *   name: "find_order",
 *   description: "Returns one order by its number.",
 *   parameters: { type: "object", properties: { number: { type: "string" } }, required: ["number"] },
 *   execute: ({ number }) => `Order ${number} is on its way.`,
 * });
 *
 * @throws {SessionError} `INVALID_TOOL` when the definition cannot work: a name that providers refuse, no description,
 * a broken JSON Schema, or a schema that gives none.
 */
export function defineTool<const S extends ToolParameters>(definition: ToolDefinition<S>): Tool {
  checkDefinition(definition as ToolDefinition<never>);
  const { name, description, parameters, exclusive, idempotent, effects, sandboxed, needsApproval, timeoutMs } =
    definition;
  const schema = Object.freeze({ name, description, parameters: describeParameters(definition) });
  const asks = typeof needsApproval === "function" ? needsApproval : () => needsApproval === true;
  return Object.freeze<Tool>({
    schema,
    check(args) {
      return isStandardSchema(parameters)
        ? checkStandardSchema(parameters, args)
        : checkArguments(schema.parameters, args);
    },
    execute: (args, context) => definition.execute(args as ToolArguments<S>, context),
    ...(definition.resourceKey && {
      resourceKey: (args: unknown) => definition.resourceKey?.(args as ToolArguments<S>) ?? null,
    }),
    ...(needsApproval && { needsApproval: (args: unknown) => asks(args as ToolArguments<S>) }),
    ...defined({ exclusive, idempotent, effects, sandboxed, timeoutMs }),
  });
}

function checkArguments(schema: JsonObject, args: unknown): CheckedArguments {
  const problem = checkJsonSchema(schema, args);
  return problem === null ? { ok: true, value: args } : { ok: false, problem };
}

function checkDefinition(definition: ToolDefinition<never>): void {
  const { name, description, execute, resourceKey, effects, needsApproval, timeoutMs } = definition;
  if (typeof name !== "string" || !NAME.test(name)) {
    throw new SessionError(
      "INVALID_TOOL",
      `A tool cannot be named ${show(name)}; use 1 to 64 of the letters a to z and A to Z, digits, "_" and "-".`,
    );
  }
  if (typeof description !== "string" || description.trim() === "") {
    throw invalidTool(name, "has no description; say what it does, for the model");
  }
  if (typeof execute !== "function") throw invalidTool(name, "has no execute function; give one");
  if (resourceKey !== undefined && typeof resourceKey !== "function") {
    throw invalidTool(name, "has a resourceKey that is not a function; make it one that takes the arguments");
  }
  if (effects !== undefined && !isToolEffects(effects)) {
    throw invalidTool(name, `has the effects ${show(effects)}; say "reads", "writes" or "commands"`);
  }
  if (needsApproval !== undefined && typeof needsApproval !== "boolean" && typeof needsApproval !== "function") {
    throw invalidTool(name, "has a needsApproval that is neither a boolean nor a function; make it one of these");
  }
  if (timeoutMs !== undefined && !(Number.isInteger(timeoutMs) && timeoutMs > 0 && timeoutMs <= TIMEOUT_MS_MAX)) {
    throw invalidTool(name, `has a timeoutMs of ${show(timeoutMs)}; use a whole number from 1 to ${TIMEOUT_MS_MAX}`);
  }
}

/** The JSON Schema that models are told: a frozen copy, always of an object. */
function describeParameters({ name, parameters, jsonSchema }: ToolDefinition<ToolParameters>): JsonObject {
  // Before 3.24, schemas of zod follow no standard and would be taken for JSON Schema.
  if (!isStandardSchema(parameters) && typeof parameters?.["safeParse"] === "function") {
    throw invalidTool(name, OLD_ZOD);
  }
  const given = isStandardSchema(parameters) ? (jsonSchema ?? convert(name, parameters)) : parameters;
  if (!isKeyed(given))
    throw invalidTool(name, "has parameters that are no schema; give JSON Schema or a Standard Schema");
  let copied: JsonObject;
  try {
    copied = copyJson(given, "parameters") as JsonObject;
  } catch (error) {
    if (!(error instanceof NotJson)) throw error;
    throw invalidTool(name, `has a schema that is not JSON: ${error.message}`, error);
  }
  const problem = findSchemaProblem(copied);
  if (problem !== null) throw invalidTool(name, `has a broken schema: ${problem}`);
  // Providers ask for an object with properties, and some refuse a $schema; neither changes what is accepted.
  const { $schema: _dialect, ...schema } = copied;
  const whole: JsonObject = { type: "object", properties: {}, ...schema };
  if (whole["type"] !== "object") {
    throw invalidTool(
      name,
      `has parameters of the type ${JSON.stringify(whole["type"])}; arguments are always an object`,
    );
  }
  return Object.freeze(whole);
}

function convert(name: string, schema: StandardSchema): unknown {
  let converted: unknown;
  try {
    converted = jsonSchemaOf(schema);
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw invalidTool(name, `has a schema that gives no JSON Schema (${reason}); add one as jsonSchema`, cause);
  }
  if (converted !== undefined) return converted;
  const { vendor } = schema["~standard"];
  if (vendor === "zod") throw invalidTool(name, OLD_ZOD);
  throw invalidTool(name, `has a schema of ${show(vendor)} that gives no JSON Schema; add one as jsonSchema`);
}

function invalidTool(name: string, problem: string, cause?: unknown): SessionError {
  return new SessionError("INVALID_TOOL", `The tool ${name} ${problem}.`, cause === undefined ? undefined : { cause });
}
