import { z } from "zod";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { Content, ToolCall } from "../../session/message.ts";
import { HttpError } from "./http-error.ts";

/** The schemas that have a name in the OpenAPI document. */
export const components: z.core.$ZodRegistry<{ id: string }> = z.registry<{ id: string }>();

/** What a schema may say of a type: JSON knows no `undefined`, so that an optional property is either there or not. */
export type Loose<T> = string extends keyof T
  ? T
  : T extends readonly (infer Item)[]
    ? readonly Loose<Item>[]
    : T extends object
      ? { readonly [Key in keyof T]: Loose<T[Key]> | undefined }
      : T;

/** Gives a schema its name, and checks that it is the schema of that type. */
export function named<T>(id: string, schema: z.ZodType<Loose<T>>): z.ZodType<T> {
  components.add(schema, { id });
  return schema as unknown as z.ZodType<T>;
}

/** Any JSON object, as it is: what may be in it is checked where it is kept. */
export const jsonObject: z.ZodType<JsonObject> = z
  .unknown()
  .refine(isObject, "This is not an object.")
  .meta({ type: "object" }) as unknown as z.ZodType<JsonObject>;

/** Any JSON value, as it is. */
export const json: z.ZodType<JsonValue> = z.unknown() as unknown as z.ZodType<JsonValue>;

/** What is answered as it is. */
export function opaque<T>(): z.ZodType<T> {
  return z.unknown().meta({ type: "object" }) as unknown as z.ZodType<T>;
}

/** An id of an entry, a user, a run or a checkpoint, or a name. */
export const id: z.ZodType<string> = z.string().min(1).max(512);

const text: z.ZodType<string> = z.string();

/** What a message says. */
export const content: z.ZodType<Content> = named<Content>(
  "Content",
  z.union([
    text,
    z.array(
      z.union([
        z.strictObject({ type: z.literal("text"), text }),
        z.strictObject({
          type: z.enum(["image", "file"]),
          mediaType: text,
          data: text,
          name: text.optional(),
        }),
        z.strictObject({ type: z.literal("thinking"), text, signature: text.optional() }),
      ]),
    ),
  ]),
);

/** A model's request to run a tool. */
export const toolCall: z.ZodType<ToolCall> = named<ToolCall>(
  "ToolCall",
  z.strictObject({ id: text, name: text, arguments: text }),
);

/** A whole number in a query. */
export function queryInteger(min: number, max: number = Number.MAX_SAFE_INTEGER): z.ZodType<number> {
  const whole = z.int().min(min).max(max);
  return z.preprocess(
    (given) => (typeof given === "string" && /^-?\d{1,16}$/.test(given) ? Number(given) : given),
    whole,
  );
}

/** A yes or no in a query. */
export const queryFlag: z.ZodType<boolean> = z.preprocess(
  (given) => (given === "true" ? true : given === "false" ? false : given),
  z.boolean(),
);

/** Something that a query may say several times. */
export function queryList<T>(item: z.ZodType<T>): z.ZodType<T[]> {
  return z.preprocess((given) => (typeof given === "string" ? [given] : given), z.array(item).max(20));
}

/** How many items a page has. */
export const limit: z.ZodType<number> = queryInteger(1, 1000);

/** @throws {HttpError} `INVALID_REQUEST`, for what a schema cannot say. */
export function refuse(path: string, message: string): never {
  throw new HttpError("INVALID_REQUEST", `The request is not valid at ${path}.`, { problems: [{ path, message }] });
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
