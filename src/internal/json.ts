/** Any JSON value. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** A JSON object. */
export type JsonObject = { readonly [key: string]: JsonValue };

/** The maximum nesting depth of a value. Deeper values would overflow the stack of some reader. */
export const JSON_DEPTH_MAX = 200;

const PATH_CHARACTERS_SHOWN = 100;

/** The value if it is an object, otherwise an empty object. */
export function asObject(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

/** The error for a value that JSON cannot represent, with its path. */
export class NotJson extends Error {
  readonly path: string;
  readonly problem: string;
  constructor(path: string, problem: string, options?: { cause?: unknown }) {
    // The path to a cycle is very long, so only its beginning is shown.
    const shown = path.length > PATH_CHARACTERS_SHOWN ? `${path.slice(0, PATH_CHARACTERS_SHOWN)}…` : path;
    super(`${shown} ${problem}`, options);
    this.path = path;
    this.problem = problem;
  }
}

/**
 * Makes a deep, frozen copy of a JSON value. Properties that are `undefined` are left out, as in `JSON.stringify`.
 *
 * @throws {NotJson} for a function, symbol, bigint, NaN, class instance, cycle, `__proto__` key, nesting that is too deep, or
 * a getter that throws.
 */
export function copyJson(value: unknown, path = "value"): JsonValue {
  return Object.freeze(copyJsonInside(value, path));
}

/** Copies an object like `copyJson`, without some of its fields. The object may be a class instance. */
export function copyJsonWithout(value: object, fields: ReadonlySet<string>, path = "value"): JsonObject {
  try {
    return Object.freeze(copyFields(value, path, 0, fields)) as JsonObject;
  } catch (error) {
    throw notJson(error, path);
  }
}

/** Copies a value like `copyJson`, but leaves the outermost value unfrozen, so that the caller can change it first. */
export function copyJsonInside(value: unknown, path = "value"): JsonValue {
  try {
    return copyValue(value, path, null, 0);
  } catch (error) {
    throw notJson(error, path);
  }
}

function notJson(error: unknown, path: string): NotJson {
  return error instanceof NotJson ? error : new NotJson(path, "cannot be read", { cause: error });
}

/** Copies the value at one step of a path. The text of the path is only built for nested values and for errors. */
function copyValue(value: unknown, path: string, step: string | number | null, depth: number): JsonValue {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      if (!Number.isFinite(value)) throw new NotJson(at(path, step), `is ${value}, which JSON cannot carry`);
      return Object.is(value, -0) ? 0 : value;
    case "object":
      return value === null ? null : copyNested(value, at(path, step), depth);
    default:
      throw new NotJson(
        at(path, step),
        `is ${value === undefined ? "" : "a "}${typeof value}, which JSON cannot carry`,
      );
  }
}

function copyNested(value: object, path: string, depth: number): JsonValue {
  if (depth >= JSON_DEPTH_MAX) throw new NotJson(path, `nests deeper than ${JSON_DEPTH_MAX} levels or contains itself`);
  if (Array.isArray(value)) return copyArray(value, path, depth);
  const prototype: unknown = Object.getPrototypeOf(value);
  // Plain objects of another realm (a vm context, a test runner) have another Object.prototype, whose prototype is null too.
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw new NotJson(path, `is a ${value.constructor?.name || "class instance"}, which JSON cannot carry`);
  }
  return copyFields(value, path, depth, NO_FIELDS);
}

function copyArray(value: readonly unknown[], path: string, depth: number): JsonValue {
  const out: JsonValue[] = [];
  for (let i = 0; i < value.length; i++) out.push(Object.freeze(copyValue(value[i], path, i, depth + 1)));
  return out;
}

const NO_FIELDS: ReadonlySet<string> = new Set();

function copyFields(value: object, path: string, depth: number, without: ReadonlySet<string>): JsonValue {
  const out: Record<string, JsonValue> = {};
  for (const key of Object.keys(value)) {
    if (without.size > 0 && without.has(key)) continue;
    if (key === "__proto__") throw new NotJson(`${path}.__proto__`, "is a key that is not allowed");
    const item: unknown = (value as Record<string, unknown>)[key];
    if (item !== undefined) out[key] = Object.freeze(copyValue(item, path, key, depth + 1));
  }
  return out;
}

function at(path: string, step: string | number | null): string {
  if (step === null) return path;
  return typeof step === "number" ? `${path}[${step}]` : `${path}.${step}`;
}

/** Whether two JSON values are equal; the order of an object's keys does not matter, nor do `undefined` properties. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((item, i) => sameJson(item, b[i]));
  }
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  const keys = Object.keys(left).filter((key) => left[key] !== undefined);
  if (keys.length !== Object.keys(right).filter((key) => right[key] !== undefined).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && sameJson(left[key], right[key]));
}
