import { hash } from "node:crypto";
import type { FormatName } from "./foreign-format.ts";

/** The id of an imported session: a hash of user, format and foreign id, so repeated imports by one user give the same id. */
export function foreignSessionId(userId: string | null, format: FormatName, foreignId: string): string {
  return `${format}-${digest([userId, format, foreignId]).slice(0, 24)}`;
}

/** Derives a UUID from a text with a fast, non-cryptographic hash, for programs that accept only UUIDs. */
export function uuidFrom(text: string): string {
  const hex = SEEDS.map((seed) => mixed(text, seed)).join("");
  const variant = ((Number.parseInt(hex[16] as string, 16) & 0x3) | 0x8).toString(16);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

const SEEDS = [0x811c9dc5, 0x9e3779b9, 0x85ebca6b, 0xc2b2ae35];

/** Eight hexadecimal digits that depend on every character of a text. */
function mixed(text: string, seed: number): string {
  let hash = seed;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
    hash ^= hash >>> 15;
  }
  hash = Math.imul(hash ^ (hash >>> 13), 0x5bd1e995);
  return ((hash ^ (hash >>> 16)) >>> 0).toString(16).padStart(8, "0");
}

/** Whether a text is a UUID in lower case, as programs write it. */
export function isUuid(id: string): boolean {
  return UUID.test(id);
}

/** The id itself if it is a UUID, else a UUID derived from it. */
export function asUuid(id: string): string {
  return isUuid(id) ? id : uuidFrom(id);
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** The SHA-256 of a text, or of a value's JSON, in hexadecimal. */
export function digest(value: unknown): string {
  return hash("sha256", typeof value === "string" ? value : JSON.stringify(value));
}
