import { createHash } from "node:crypto";

const NAME_CHARACTERS_MAX = 64;
const HASH_CHARACTERS = 8;

/**
 * The name of a tool for models: letters, digits, `_` and `-`, at most 64 characters.
 *
 * A valid name is kept. In any other, invalid characters are replaced and a part of the name's hash is added, so that different
 * names stay different, whatever the order in which a server lists them.
 */
export function toolName(prefix: string, name: string): string {
  const whole = `${prefix}${name}`;
  if (/^[a-zA-Z0-9_-]{1,64}$/.test(whole)) return whole;
  const hash = createHash("sha256").update(whole).digest("hex").slice(0, HASH_CHARACTERS);
  const readable = whole.normalize("NFKD").replace(/[^a-zA-Z0-9_-]+/g, "_");
  return `${readable.slice(0, NAME_CHARACTERS_MAX - HASH_CHARACTERS - 1)}_${hash}`;
}
