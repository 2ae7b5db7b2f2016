import { isObject } from "../../session/check-arguments.ts";
import { SessionError, show } from "../../session/errors.ts";

/** The value of a model's option `cache`, with its defaults. */
export interface CacheSetting<Lifetime extends string> {
  /** How long the provider is asked to keep a cached prefix; undefined for its default. */
  readonly lifetime: Lifetime | undefined;
  /** Whether the option was given, and not left to its default. */
  readonly given: boolean;
}

/**
 * Reads the option `cache` of a model; null if it switches caching off.
 *
 * @throws {SessionError} `INVALID_OPTION` for another value, or a lifetime that the provider does not have.
 */
export function cacheSetting<Lifetime extends string>(
  option: boolean | { readonly lifetime?: Lifetime } | undefined,
  lifetimes: readonly Lifetime[],
  call: string,
): CacheSetting<Lifetime> | null {
  if (option === false) return null;
  if (option === undefined || option === true) return { lifetime: undefined, given: option === true };
  const { lifetime } = isObject(option) ? option : { lifetime: option as Lifetime };
  const known = isObject(option) && Object.keys(option).every((name) => name === "lifetime");
  if (known && (lifetime === undefined || lifetimes.includes(lifetime))) return { lifetime, given: true };
  const choices = lifetimes.map((name) => JSON.stringify(name)).join(" or ");
  throw new SessionError(
    "INVALID_OPTION",
    `The option cache of ${call} is ${show(option)}; it must be true, false, or an object with the lifetime ${choices}.`,
  );
}

/**
 * The positions of the messages at which a request ends the part that the next request repeats: the last message that
 * is not an answer, and the one at which the previous request ended: before the last answer, but for "merged" ones, which answered
 * requests of another session. Each is -1 if there is none.
 */
export function markedMessages(roles: readonly string[]): { readonly last: number; readonly before: number } {
  const isAsked = (role: string): boolean => !["assistant", "merged", "system"].includes(role);
  const last = roles.findLastIndex(isAsked);
  const answered = roles.lastIndexOf("assistant");
  return { last, before: answered < 0 ? -1 : roles.slice(0, answered).findLastIndex(isAsked) };
}
