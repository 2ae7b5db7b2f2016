import type { JsonObject, JsonValue } from "../../internal/json.ts";
import { sameJson } from "../../internal/json.ts";
import type { Entry } from "../../session/log/entry.ts";
import type { FormatName } from "./foreign-format.ts";
import { isFields } from "./foreign-values.ts";

/**
 * A patch that turns one JSON object into another: fields to set, fields to remove, and patches of nested values. Lists of the
 * same length are compared item by item.
 */
export interface JsonPatch {
  readonly set?: JsonObject;
  readonly unset?: readonly string[];
  readonly inside?: { readonly [key: string]: JsonPatch };
}

/** The patch that turns `translated` into `original`; undefined if they are equal. `applyPatch` applies it. */
export function diffJson(original: JsonValue, translated: JsonValue): JsonPatch | undefined {
  const [from, to] = [fieldsOf(translated), fieldsOf(original)];
  let set: Record<string, JsonValue> | undefined;
  let inside: Record<string, JsonPatch> | undefined;
  let unset: string[] | undefined;
  for (const key in to) {
    const value = to[key] as JsonValue;
    // Inherited members (functions) never equal a JSON value, so `hasOwn` is needed only after this comparison.
    if (from[key] === value) continue;
    const other = Object.hasOwn(from, key) ? from[key] : undefined;
    if (other === undefined || !canPatch(value, other)) {
      if (other !== undefined && sameJson(value, other)) continue;
      setField((set ??= {}), key, value);
      continue;
    }
    const rest = diffJson(value, other);
    if (rest === undefined) continue;
    setField((inside ??= {}), key, rest);
  }
  for (const key in from) {
    if (Object.hasOwn(to, key)) continue;
    unset ??= [];
    unset.push(key);
  }
  if (set === undefined && inside === undefined && unset === undefined) return undefined;
  const rest: { -readonly [Field in keyof JsonPatch]: JsonPatch[Field] } = {};
  if (set !== undefined) rest.set = set;
  if (unset !== undefined) rest.unset = unset;
  if (inside !== undefined) rest.inside = inside;
  return rest;
}

/** Applies a patch to a translated object; the result is the original object. */
export function applyPatch<T extends JsonValue>(translated: T, rest: JsonPatch | undefined): T {
  // The patch comes from a log, and a log from elsewhere may hold any value here.
  if (!isFields(rest)) return translated;
  const set = isFields(rest.set) ? rest.set : {};
  const unset: readonly unknown[] = Array.isArray(rest.unset) ? rest.unset : [];
  const inside = isFields(rest.inside) ? rest.inside : {};
  const fields: Record<string, JsonValue> = { ...fieldsOf(translated), ...set };
  for (const key of unset) if (typeof key === "string") delete fields[key];
  for (const key in inside) {
    const value = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (typeof value === "object" && value !== null)
      fields[key] = applyPatch(value, inside[key] as JsonPatch | undefined);
  }
  return (Array.isArray(translated) ? Object.values(fields) : fields) as unknown as T;
}

/** The data that an import stored with an entry for its format: what the entry itself does not hold. */
export function foreignRest(entry: Entry, format: FormatName): JsonValue | undefined {
  const { foreign } = entry as { readonly foreign?: JsonValue };
  return isFields(foreign) ? foreign[format] : undefined;
}

/** Sets a field, `__proto__` included. An object without a prototype would need no care, but is a third slower to read. */
function setField<T>(fields: Record<string, T>, key: string, value: T): void {
  if (key === "__proto__") Object.defineProperty(fields, key, { value, enumerable: true });
  else fields[key] = value;
}

function canPatch(a: JsonValue, b: JsonValue): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  return !Array.isArray(a) || a.length === (b as readonly JsonValue[]).length;
}

function fieldsOf(value: JsonValue): JsonObject {
  return value as unknown as JsonObject;
}
