import { suggestion } from "../internal/nearest.ts";
import { SessionError, show } from "./errors.ts";
import type { SessionStore } from "./store.ts";

/**
 * The keys that an options object may have. The compiler checks that the list names exactly the fields of the type.
 *
 * @example
 * const CANCEL: KeysOf<CancelRun> = { runId: true, reason: true };
 */
export type KeysOf<T> = { readonly [Key in keyof Required<T>]: true };

/** For keys that other SDKs use: what to write here instead. */
export type Habits = Readonly<Record<string, string>>;

/**
 * Refuses an object with an unknown key. Otherwise a misspelt option, or one in the wrong argument, would be ignored
 * silently.
 *
 * @throws {SessionError} `INVALID_OPTION`, with the closest known key, or a list of all known keys.
 */
export function checkKeys(value: unknown, known: Readonly<Record<string, true>>, call: string, habits?: Habits): void {
  // The call itself refuses or accepts other values.
  if (!isObject(value)) return;
  for (const key of Object.keys(value)) {
    if (Object.hasOwn(known, key)) continue;
    if (habits !== undefined && Object.hasOwn(habits, key)) {
      throw new SessionError("INVALID_OPTION", `${call} does not take ${show(key)}; ${habits[key]}.`);
    }
    const names = Object.keys(known);
    const takes = names.length === 0 ? " it takes no options." : ` this argument takes ${names.join(", ")}.`;
    const meant = suggestion(key, names) || takes;
    throw new SessionError("INVALID_OPTION", `${call} does not take ${show(key)} here;${meant}`);
  }
}

/**
 * Refuses options that are not an object, or that have an unknown key.
 *
 * @throws {SessionError} `INVALID_OPTION`
 */
export function checkOptionsOf(
  options: unknown,
  known: Readonly<Record<string, true>>,
  call: string,
  habits?: Habits,
): void {
  checkArgument(isObject(options), options, call, "an object of options");
  checkKeys(options, known, call, habits);
}

/**
 * Refuses an argument of the wrong kind, which would otherwise fail later with a `TypeError` that names neither the
 * call nor the argument.
 *
 * @example
 * checkArgument(Array.isArray(messages), messages, "contextTokens", "a list of messages");
 *
 * @throws {SessionError} `INVALID_OPTION` if `right` is false.
 */
export function checkArgument(right: boolean, value: unknown, call: string, wanted: string): void {
  if (right) return;
  throw new SessionError("INVALID_OPTION", `${call} takes ${wanted}, not ${describe(value)}.`);
}

/** @throws {SessionError} `INVALID_OPTION` unless the value is a list of objects. */
export function checkObjects(values: unknown, call: string, wanted: string): void {
  checkArgument(Array.isArray(values), values, call, wanted);
  for (const value of values as readonly unknown[]) checkArgument(isObject(value), value, call, wanted);
}

/** @throws {SessionError} `INVALID_OPTION` unless the value is an open store. A URL may hold a password, so it is not shown. */
export function checkStoreArgument(store: unknown, call: string): asserts store is SessionStore {
  if (isObject(store) && ["create", "append", "read", "head"].every((name) => typeof store[name] === "function"))
    return;
  throw new SessionError(
    "INVALID_OPTION",
    `${call} was given a value of type ${typeof store}, which is no open store; make one with await openStore("sqlite:./sessions.db").`,
  );
}

/** True for an object with keys; false for arrays. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** True for anything iterable except strings. */
export function isIterable(value: unknown): value is Iterable<unknown> {
  return typeof value === "object" && value !== null && Symbol.iterator in value;
}

/** True for anything iterable or async iterable except strings. */
export function isStream(value: unknown): boolean {
  return isIterable(value) || (typeof value === "object" && value !== null && Symbol.asyncIterator in value);
}

function describe(value: unknown): string {
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "an object";
  return typeof value === "function" ? "a function" : show(value);
}

/** The error for an invalid option or argument. */
export function invalidOption(message: string, cause?: unknown): SessionError {
  return new SessionError("INVALID_OPTION", message, cause === undefined ? {} : { cause });
}
