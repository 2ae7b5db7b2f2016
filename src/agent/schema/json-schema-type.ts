/**
 * The TypeScript type of what a JSON Schema written as a literal accepts: objects, arrays, scalars, `enum`, `const` and
 * unions. Other keywords are `unknown` in the type but still checked at run time.
 */
export type FromJsonSchema<S> = S extends { readonly const: infer Value }
  ? Value
  : S extends { readonly enum: readonly (infer Value)[] }
    ? Value
    : S extends { readonly type: infer Type }
      ? FromType<Type, S>
      : S extends { readonly anyOf: readonly (infer Branch)[] } | { readonly oneOf: readonly (infer Branch)[] }
        ? FromJsonSchema<Branch>
        : unknown;

type FromType<Type, S> = Type extends readonly (infer Name)[]
  ? FromType<Name, S>
  : Type extends "string"
    ? string
    : Type extends "number" | "integer"
      ? number
      : Type extends "boolean"
        ? boolean
        : Type extends "null"
          ? null
          : Type extends "array"
            ? FromArray<S>
            : Type extends "object"
              ? FromObject<S>
              : unknown;

type FromArray<S> = S extends { readonly items: infer Item } ? readonly FromJsonSchema<Item>[] : readonly unknown[];

type FromObject<S> = S extends { readonly properties: infer Properties }
  ? Flat<
      { readonly [Key in keyof Properties & RequiredOf<S>]: FromJsonSchema<Properties[Key]> } & {
        readonly [Key in Exclude<keyof Properties, RequiredOf<S>>]?: FromJsonSchema<Properties[Key]>;
      }
    >
  : Readonly<Record<string, unknown>>;

type RequiredOf<S> = S extends { readonly required: readonly (infer Key)[] } ? Key : never;

type Flat<T> = { [Key in keyof T]: T[Key] };
