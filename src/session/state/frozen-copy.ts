import { copyJson, NotJson } from "../../internal/json.ts";
import { SessionError } from "../errors.ts";

/**
 * A value that nobody can change: itself when it is frozen, else a frozen copy. What is frozen already is taken to be
 * frozen all through.
 *
 * @throws {SessionError} `INVALID_VALUE` for what JSON cannot carry.
 */
export function frozenCopy<T>(value: T, what = "value"): T {
  if (typeof value === "object" && Object.isFrozen(value)) return value;
  try {
    return copyJson(value, what) as T;
  } catch (error) {
    if (error instanceof NotJson) throw new SessionError("INVALID_VALUE", `${error.message}.`, { cause: error });
    throw error;
  }
}
