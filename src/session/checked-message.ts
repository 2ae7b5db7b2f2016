import { createBrand } from "../internal/brand.ts";
import { copyJsonInside, NotJson } from "../internal/json.ts";
import { checkMessage } from "./log/entry-check.ts";
import { SessionError } from "./errors.ts";
import type { Message } from "./message.ts";

/**
 * Messages that were checked, copied and deeply frozen. A message passes through many functions; one check is enough.
 */
const checked = createBrand();

/** Whether a message was already checked. A checked message is frozen, so it is still valid. */
export function isCheckedMessage(value: unknown): value is Message {
  return typeof value === "object" && value !== null && checked.has(value);
}

/**
 * Returns a checked, frozen copy of a message; returns the message itself if it is such a copy already.
 *
 * @throws {SessionError} `INVALID_ENTRY` or `INVALID_VALUE` for a message that a session cannot hold.
 */
export function checkedMessage(given: unknown): Message {
  if (isCheckedMessage(given)) return given;
  const message = copyOf(withBase64(given ?? null));
  checkMessage(message);
  checked.add(message as object);
  return Object.freeze(message) as Message;
}

/** A message with base64 in place of a `Uint8Array` as the data of an image or file. */
function withBase64(given: unknown): unknown {
  const { content } = (given ?? {}) as { readonly content?: unknown };
  if (!Array.isArray(content) || !content.some((part) => part?.data instanceof Uint8Array)) return given;
  const parts = content.map((part) =>
    part?.data instanceof Uint8Array ? { ...part, data: toBase64(part.data) } : part,
  );
  return { ...(given as object), content: parts };
}

function toBase64(bytes: Uint8Array): string {
  let text = "";
  // A multiple of three, so that each piece but the last has no padding.
  for (let at = 0; at < bytes.length; at += 24_573)
    text += btoa(String.fromCharCode(...bytes.subarray(at, at + 24_573)));
  return text;
}

function copyOf(given: unknown): unknown {
  try {
    return copyJsonInside(given, "message");
  } catch (error) {
    if (error instanceof NotJson) throw new SessionError("INVALID_VALUE", `${error.message}.`, { cause: error });
    throw error;
  }
}
