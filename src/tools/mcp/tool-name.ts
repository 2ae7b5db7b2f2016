import { createHash } from "node:crypto";

const NAME_CHARACTERS_MAX = 64;
const HASH_CHARACTERS = 8;

/**
 * The name a model is told of a tool: letters, digits, `_` and `-`, at most 64 of them.
 *
 * A name that every provider takes stays as it is. Any other gets the beginning of its hash, so that two names which
 * look alike after the change stay apart, in whatever order a server lists them.
 */
export function toolName(prefix: string, name: string): string {
  const whole = `${prefix}${name}`;
  if (/^[a-zA-Z0-9_-]{1,64}$/.test(whole)) return whole;
  const hash = createHash("sha256").update(whole).digest("hex").slice(0, HASH_CHARACTERS);
  const readable = whole.normalize("NFKD").replace(/[^a-zA-Z0-9_-]+/g, "_");
  return `${readable.slice(0, NAME_CHARACTERS_MAX - HASH_CHARACTERS - 1)}_${hash}`;
}
