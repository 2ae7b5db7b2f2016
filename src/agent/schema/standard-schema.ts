import { withoutStop } from "../../internal/trim-text.ts";
import { findHazard } from "./json-schema.ts";
import { type Position, PROBLEMS_MAX, type Problem, showProblems } from "./json-schema-problem.ts";
import type { CheckedArguments } from "../tools/tool.ts";

/** A schema of any library that implements Standard Schema: it validates values, and may provide a JSON Schema. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly jsonSchema?: { readonly input: (options: { readonly target: string }) => Record<string, unknown> };
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** The result of validating a value with a Standard Schema. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** Whether a value implements Standard Schema. In some libraries, schemas are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard: unknown = (value as Partial<StandardSchema>)["~standard"];
  return typeof (standard as StandardSchema["~standard"] | undefined)?.validate === "function";
}

/**
 * The JSON Schema of a schema's input, or undefined if its library provides none. Errors of the library are passed on.
 */
export function jsonSchemaOf(schema: StandardSchema): unknown {
  const convert = schema["~standard"].jsonSchema?.input;
  if (typeof convert !== "function") return undefined;
  try {
    return convert({ target: "draft-2020-12" });
  } catch {
    // Not every library supports the newer draft. A schema that cannot be converted at all fails again here, with a
    // reason.
    return convert({ target: "draft-07" });
  }
}

/** The output of a schema for a value, with its defaults and conversions, or what is wrong with the value. */
export async function checkStandardSchema(
  schema: StandardSchema,
  value: unknown,
  name = "arguments",
): Promise<CheckedArguments> {
  const hazard = findHazard(value, name);
  if (hazard !== null) return { ok: false, problem: hazard };
  let result: StandardResult<unknown>;
  try {
    result = await schema["~standard"].validate(value);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { ok: false, problem: `${name} could not be checked: ${withoutStop(reason)}.` };
  }
  if (result.issues === undefined) return { ok: true, value: result.value };
  return {
    ok: false,
    problem: showProblems(result.issues.slice(0, PROBLEMS_MAX).map((issue) => problemOf(issue, name))),
  };
}

function problemOf({ message, path = [] }: StandardIssue, name: string): Problem {
  let at: Position = { parent: null, key: name };
  for (const step of path) {
    const key = typeof step === "object" ? step.key : step;
    at = { parent: at, key: typeof key === "number" ? key : String(key) };
  }
  return { at, says: `is refused: ${withoutStop(message)}` };
}
