import type { JsonObject, JsonValue } from "../../internal/json.ts";
import { sameJson } from "../../internal/json.ts";
import type { Entry } from "../../session/log/entry.ts";
import type { FormatName } from "./foreign-format.ts";
import { isFields } from "./foreign-values.ts";

/**
 * What must be done to one JSON object to get another: fields to set, to remove, and to change inside. Lists of the same
 * length are compared item by item.
 */
export interface Rest {
  readonly set?: JsonObject;
  readonly unset?: readonly string[];
  readonly inside?: { readonly [key: string]: Rest };
}

/** What of a foreign object its translation does not say; undefined where it says all. `withRest` brings it back. */
export function restOf(original: JsonValue, translated: JsonValue): Rest | undefined {
  const [from, to] = [fieldsOf(translated), fieldsOf(original)];
  let set: Record<string, JsonValue> | undefined;
  let inside: Record<string, Rest> | undefined;
  let unset: string[] | undefined;
  for (const key in to) {
    const value = to[key] as JsonValue;
    // What every object has is no JSON value, so that only what is not the same must be the object's own.
    if (from[key] === value) continue;
    const other = Object.hasOwn(from, key) ? from[key] : undefined;
    if (other === undefined || !canPatch(value, other)) {
      if (other !== undefined && sameJson(value, other)) continue;
      setField((set ??= {}), key, value);
      continue;
    }
    const rest = restOf(value, other);
    if (rest === undefined) continue;
    setField((inside ??= {}), key, rest);
  }
  for (const key in from) {
    if (Object.hasOwn(to, key)) continue;
    unset ??= [];
    unset.push(key);
  }
  if (set === undefined && inside === undefined && unset === undefined) return undefined;
  const rest: { -readonly [Field in keyof Rest]: Rest[Field] } = {};
  if (set !== undefined) rest.set = set;
  if (unset !== undefined) rest.unset = unset;
  if (inside !== undefined) rest.inside = inside;
  return rest;
}

/** A translated object with what its translation did not say. */
export function withRest<T extends JsonValue>(translated: T, rest: Rest | undefined): T {
  // It lies in a log, and a log that came from elsewhere may hold anything in its place.
  if (!isFields(rest)) return translated;
  const set = isFields(rest.set) ? rest.set : {};
  const unset: readonly unknown[] = Array.isArray(rest.unset) ? rest.unset : [];
  const inside = isFields(rest.inside) ? rest.inside : {};
  const fields: Record<string, JsonValue> = { ...fieldsOf(translated), ...set };
  for (const key of unset) if (typeof key === "string") delete fields[key];
  for (const key in inside) {
    const value = Object.hasOwn(fields, key) ? fields[key] : undefined;
    if (typeof value === "object" && value !== null) fields[key] = withRest(value, inside[key] as Rest | undefined);
  }
  return (Array.isArray(translated) ? Object.values(fields) : fields) as unknown as T;
}

/** What an import kept beside an entry for its format. */
export function foreignRest(entry: Entry, format: FormatName): JsonValue | undefined {
  const { foreign } = entry as { readonly foreign?: JsonValue };
  return isFields(foreign) ? foreign[format] : undefined;
}

/** An object without a prototype would need no such care, and takes all that read it a third longer. */
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
