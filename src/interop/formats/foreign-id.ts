import { createHash } from "node:crypto";
import type { FormatName } from "./foreign-format.ts";

/** The id of an imported session here: the same user's same session always has the same one, and nobody else's has it. */
export function foreignSessionId(userId: string | null, format: FormatName, foreignId: string): string {
  return `${format}-${digest([userId, format, foreignId]).slice(0, 24)}`;
}

/** A UUID that is derived from a text: for programs that take no other ids. */
export function uuidFrom(text: string): string {
  const hex = digest(text);
  const variant = ((Number.parseInt(hex[16] as string, 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

/** The id as it is when it is a UUID, else one that is derived from it. */
export function asUuid(id: string): string {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(id) ? id : uuidFrom(id);
}

/** A short text that tells values apart. */
export function digest(value: unknown): string {
  return createHash("sha256")
    .update(typeof value === "string" ? value : JSON.stringify(value))
    .digest("hex");
}
