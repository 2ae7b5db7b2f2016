import { z } from "zod";
import type { JsonObject, JsonValue } from "../../internal/json.ts";
import type { Content, ContentPart, ToolCall } from "../../session/message.ts";
import { HttpError } from "./http-error.ts";

/** The named schemas of the OpenAPI document. */
export const components: z.core.$ZodRegistry<{ id: string }> = z.registry<{ id: string }>();

/** The type that a schema may describe: JSON has no `undefined`, so an optional property is either present or not. */
export type Loose<T> = string extends keyof T
  ? T
  : T extends readonly (infer Item)[]
    ? readonly Loose<Item>[]
    : T extends object
      ? { readonly [Key in keyof T]: Loose<T[Key]> | undefined }
      : T;

/** Registers a schema under a name, and checks at compile time that it describes the type. */
export function named<T>(id: string, schema: z.ZodType<Loose<T>>): z.ZodType<T> {
  components.add(schema, { id });
  return schema as unknown as z.ZodType<T>;
}

/** Names each variant of a union with a common suffix, and documents the discriminator of the union. */
export function nameVariants<Union extends z.ZodDiscriminatedUnion>(suffix: string, union: Union): Union {
  const propertyName = union.def.discriminator;
  const mapping: Record<string, string> = {};
  for (const variant of union.options as readonly z.ZodObject[]) {
    const { value } = variant.shape[propertyName] as z.ZodLiteral<string>;
    const id = `${value.replace(/(?:^|[-_])(\w)/g, (_, letter: string) => letter.toUpperCase())}${suffix}`;
    components.add(variant, { id });
    mapping[value] = `#/components/schemas/${id}`;
  }
  return union.meta({ discriminator: { propertyName, mapping } });
}

/** Any JSON object; its contents are checked when it is stored. */
export const jsonObject: z.ZodType<JsonObject> = named<JsonObject>(
  "JsonObject",
  z.unknown().refine(isObject, "This is not an object.").meta({ type: "object" }) as unknown as z.ZodType<JsonObject>,
);

/** Any JSON value. */
export const json: z.ZodType<JsonValue> = z.unknown() as unknown as z.ZodType<JsonValue>;

/** The check of a list stops after this many problems. */
const LIST_PROBLEMS_MAX = 10;

interface ListDefinition extends z.core.$ZodArrayDef {
  readonly itemsMax: number;
}

interface BoundedList<T> extends z.ZodType<T[]> {
  _zod: z.core.$ZodTypeInternals<T[], unknown> & { def: ListDefinition };
}

const BoundedList: z.core.$constructor<BoundedList<unknown>> = z.core.$constructor(
  "BoundedList",
  (list, definition) => {
    const { element, itemsMax } = definition as unknown as ListDefinition;
    z.ZodArray.init(list as unknown as z.ZodArray, definition as never);
    const refuseOther = list._zod.parse;
    list._zod.parse = (payload, context) => {
      const given: unknown = payload.value;
      if (!Array.isArray(given)) return refuseOther(payload, context);
      if (given.length > itemsMax) {
        const about = {
          code: "too_big",
          origin: "array",
          maximum: itemsMax,
          inclusive: true,
          continue: false,
        } as const;
        payload.issues.push({ ...about, input: undefined, inst: list } as z.core.$ZodRawIssue);
        return payload;
      }
      const items: unknown[] = [];
      payload.value = items;
      for (let i = 0; i < given.length && payload.issues.length < LIST_PROBLEMS_MAX; i++) {
        const item = element._zod.run({ value: given[i], issues: [] }, context) as z.core.ParsePayload;
        items.push(item.value);
        if (item.issues.length > 0) payload.issues.push(...z.core.util.prefixIssues(i, item.issues));
      }
      return payload;
    };
  },
);

/**
 * A list in a request: its length is checked before its items, and the check stops after ten problems. `route` ensures that every
 * list in a request is one of these.
 */
export function list<T>(item: z.ZodType<T>, itemsMax: number, itemsMin = 0): z.ZodType<T[]> {
  const checks = [z.maxLength(itemsMax), ...(itemsMin > 0 ? [z.minLength(itemsMin)] : [])];
  return new BoundedList({ type: "array", element: item, itemsMax, checks } as never) as unknown as z.ZodType<T[]>;
}

/** @throws {Error} for a request schema with an unbounded list or record, which is a bug. */
export function checkBounded(schema: z.core.$ZodType, name: string, seen: Set<unknown> = new Set()): void {
  if (seen.has(schema)) return;
  seen.add(schema);
  const { def } = schema._zod;
  const anyLength = ["array", "set", "map", "record", "tuple"].includes(def.type) && !(schema instanceof BoundedList);
  if (anyLength) throw new Error(`${name} has a ${def.type} of any length; use list(item, itemsMax).`);
  for (const part of partsOf(def as unknown as Readonly<Record<string, unknown>>)) checkBounded(part, name, seen);
}

/** The schemas that a schema contains, whatever its kind. */
function partsOf(definition: Readonly<Record<string, unknown>>): z.core.$ZodType[] {
  const isSchema = (value: unknown): value is z.core.$ZodType => value instanceof z.core.$ZodType;
  return Object.entries(definition).flatMap(([key, value]) => {
    if (isSchema(value)) return [value];
    if (Array.isArray(value)) return value.filter(isSchema);
    return key === "shape" ? Object.values(value as Record<string, unknown>).filter(isSchema) : [];
  });
}

/** An id of an entry, a user, a run or a checkpoint, or a name. */
export const id: z.ZodType<string> = z.string().min(1).max(512);

const text: z.ZodType<string> = z.string();

/** The most that `contentPartsMax` may be. */
export const CONTENT_PARTS_CEILING = 10_000;

const contentPart = named<ContentPart>(
  "ContentPart",
  z.union([
    z.strictObject({ type: z.literal("text"), text }),
    z.strictObject({ type: z.enum(["image", "file"]), mediaType: text, data: text, name: text.optional() }),
    z.strictObject({
      type: z.enum(["image", "file"]),
      mediaType: text,
      blob: z.string().regex(/^sha256:[0-9a-f]{64}$/),
      bytes: z.int().min(0),
      name: text.optional(),
    }),
    z.strictObject({ type: z.literal("thinking"), text, signature: text.optional() }),
  ]),
);

/** The content of a message. */
export const content: z.ZodType<Content> = named<Content>(
  "Content",
  z.union([text, list(contentPart, CONTENT_PARTS_CEILING)], {
    error: "This is neither a text nor a list of parts: text, image, file or thinking.",
  }),
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

/** A boolean in a query. */
export const queryFlag: z.ZodType<boolean> = z.preprocess(
  (given) => (given === "true" ? true : given === "false" ? false : given),
  z.boolean(),
);

/** A query parameter that may be repeated. */
export function queryList<T>(item: z.ZodType<T>): z.ZodType<T[]> {
  return z.preprocess((given) => (typeof given === "string" ? [given] : given), list(item, 20));
}

/** The number of items on a page. */
export const limit: z.ZodType<number> = queryInteger(1, 1000);

/** @throws {HttpError} `INVALID_REQUEST`, for rules that a schema cannot express. */
export function refuse(path: string, message: string): never {
  throw new HttpError("INVALID_REQUEST", `The request is not valid at ${path}.`, { problems: [{ path, message }] });
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
