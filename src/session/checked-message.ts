import { createBrand } from "../internal/brand.ts";
import { copyJsonInside, NotJson } from "../internal/json.ts";
import { checkMessage } from "./log/entry-check.ts";
import { SessionError } from "./errors.ts";
import type { Message } from "./message.ts";

/** Messages that were checked, copied and frozen all through; a message passes many hands, and one check is enough. */
const checked = createBrand();

/** Whether a message was checked already, and cannot have changed since. */
export function isCheckedMessage(value: unknown): value is Message {
  return typeof value === "object" && value !== null && checked.has(value);
}

/**
 * A frozen copy of a message that a session can hold; the same one for a message that is such a copy.
 *
 * @throws {SessionError} `INVALID_ENTRY` or `INVALID_VALUE` for a message that a session cannot hold.
 */
export function checkedMessage(given: unknown): Message {
  if (isCheckedMessage(given)) return given;
  const message = copyOf(given ?? null);
  checkMessage(message);
  checked.add(message as object);
  return Object.freeze(message) as Message;
}

function copyOf(given: unknown): unknown {
  try {
    return copyJsonInside(given, "message");
  } catch (error) {
    if (error instanceof NotJson) throw new SessionError("INVALID_VALUE", `${error.message}.`, { cause: error });
    throw error;
  }
}
