import { checkOptionsOf, type Habits, type KeysOf } from "../../session/check-arguments.ts";
import { defined } from "../../internal/defined.ts";
import type { JsonObject } from "../../internal/json.ts";
import { SessionError, show } from "../../session/errors.ts";
import { isStandardSchema } from "../schema/standard-schema.ts";
import { checkValue, readSchema, type ValueOf, type ValueSchema } from "../schema/value-schema.ts";
import type { Tool, ToolContext } from "./tool.ts";
import { isToolEffects, type ToolEffects } from "./tool-effects.ts";

const NAME = /^[a-zA-Z0-9_-]{1,64}$/;
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

/** The definition of a tool, as passed to `defineTool`. */
export interface ToolDefinition<S extends ValueSchema> {
  /** Letters, digits, `_` and `-`, at most 64. */
  readonly name: string;
  /** What the tool does and when to use it, for the model. */
  readonly description: string;
  readonly parameters: S;
  /** The JSON Schema of the parameters, for a Standard Schema that does not provide one. */
  readonly jsonSchema?: JsonObject;
  /** Runs the tool. Its result or error is sent to the model. */
  execute(args: ValueOf<S>, context: ToolContext): unknown;
  /** Calls with equal keys run one after another, in call order; a null key is equal to no other. */
  resourceKey?(args: ValueOf<S>): string | null;
  /** Runs alone: after all calls before it, and before all calls after it. */
  readonly exclusive?: boolean;
  /** Repeating a call is harmless, so a recovered run may repeat it. */
  readonly idempotent?: boolean;
  /** The most that its calls can do: read, change files or other data, or anything (default `commands`). */
  readonly effects?: ToolEffects;
  /** Acts only in the session's sandbox, so that an approval question can show what is reachable. */
  readonly sandboxed?: boolean;
  /** Whether a call needs approval, regardless of the option `ask`. */
  readonly needsApproval?: boolean | ((args: ValueOf<S>) => boolean | Promise<boolean>);
  readonly timeoutMs?: number;
}

/**
 * Defines a tool that models can call.
 *
 * Arguments are validated before `execute` is called; invalid ones are returned to the model with the path and the
 * reason. With a Standard Schema, `execute` gets its output, with defaults and conversions applied.
 *
 * @example
 * const findOrder = defineTool({
 *   name: "find_order",
 *   description: "Returns one order by its number.",
 *   parameters: { type: "object", properties: { number: { type: "string" } }, required: ["number"] },
 *   execute: ({ number }) => `Order ${number} is on its way.`,
 * });
 *
 * @throws {SessionError} `INVALID_TOOL` for an invalid definition: a name that providers refuse, no description, an
 * invalid JSON Schema, or a schema that provides none.
 */
export function defineTool<const S extends ValueSchema>(definition: ToolDefinition<S>): Tool {
  checkDefinition(definition as ToolDefinition<never>);
  const { name, description, parameters, exclusive, idempotent, effects, sandboxed, needsApproval, timeoutMs } =
    definition;
  const schema = Object.freeze({ name, description, parameters: describeParameters(definition) });
  const asks = typeof needsApproval === "function" ? needsApproval : () => needsApproval === true;
  return Object.freeze<Tool>({
    schema,
    check: (args) => checkValue(isStandardSchema(parameters) ? parameters : schema.parameters, args),
    execute: (args, context) => definition.execute(args as ValueOf<S>, context),
    ...(definition.resourceKey && {
      resourceKey: (args: unknown) => definition.resourceKey?.(args as ValueOf<S>) ?? null,
    }),
    ...(needsApproval && { needsApproval: (args: unknown) => asks(args as ValueOf<S>) }),
    ...defined({ exclusive, idempotent, effects, sandboxed, timeoutMs }),
  });
}

const DEFINITION_KEYS: KeysOf<ToolDefinition<ValueSchema>> = {
  name: true,
  description: true,
  parameters: true,
  jsonSchema: true,
  execute: true,
  resourceKey: true,
  exclusive: true,
  idempotent: true,
  effects: true,
  sandboxed: true,
  needsApproval: true,
  timeoutMs: true,
};

/** The names of a tool's parts in other SDKs. */
const HABITS: Habits = {
  inputSchema: "what a tool takes is its parameters, a JSON Schema or a Standard Schema",
  input_schema: "what a tool takes is its parameters, a JSON Schema or a Standard Schema",
  schema: "what a tool takes is its parameters, a JSON Schema or a Standard Schema",
  args: "what a tool takes is its parameters, a JSON Schema or a Standard Schema",
  id: "a tool has a name",
  func: "the function of a tool is execute",
  handler: "the function of a tool is execute",
  run: "the function of a tool is execute",
  invoke: "the function of a tool is execute",
  outputSchema: "what execute returns goes to the model as it is",
  strict: "arguments are always checked",
};

function checkDefinition(definition: ToolDefinition<never>): void {
  checkOptionsOf(definition, DEFINITION_KEYS, "defineTool", HABITS);
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

/** The JSON Schema that models see: frozen, and always of an object. */
function describeParameters({ name, parameters, jsonSchema }: ToolDefinition<ValueSchema>): JsonObject {
  const given = isStandardSchema(parameters) ? (jsonSchema ?? parameters) : parameters;
  const read = readSchema(given, { name: "parameters", remedy: "add one as jsonSchema" });
  if ("problem" in read) throw invalidTool(name, read.problem, read.cause);
  // Providers require an object with properties; this does not change what is accepted.
  const whole: JsonObject = { type: "object", properties: {}, ...read.schema };
  if (whole["type"] !== "object") {
    throw invalidTool(
      name,
      `has parameters of the type ${JSON.stringify(whole["type"])}; arguments are always an object`,
    );
  }
  return Object.freeze(whole);
}

function invalidTool(name: string, problem: string, cause?: unknown): SessionError {
  return new SessionError("INVALID_TOOL", `The tool ${name} ${problem}.`, cause === undefined ? undefined : { cause });
}
