import { wordPattern } from "./turns/word-pattern.ts";

/** What an answer says about who is next: a name, nobody, or nothing that can be relied on. */
export type NameFound = { readonly name: string } | "nobody" | "unclear";

const NOBODY = ["nobody", "no one", "noone", "none"];

/**
 * The one name that an answer holds, with whatever prose around it. An answer that is a name and nothing else is that
 * name; one with several names is unclear.
 */
export function findName(answer: string, names: readonly string[]): NameFound {
  const bare = answer.trim().replace(/^["'`*_[({\s]+|["'`*_\])}.!,;:\s]+$/g, "");
  const exact = names.find((name) => name === bare) ?? names.find((name) => name.toLowerCase() === bare.toLowerCase());
  if (exact !== undefined) return { name: exact };
  const found = new Set<string>();
  let rest = answer;
  // The longest first, and taken out of the text, so that "Ann" is not found in "Ann Lee".
  for (const name of names.toSorted((a, b) => b.length - a.length)) {
    const without = rest.replace(wordPattern(name, "\\-"), "\0");
    if (without !== rest) found.add(name);
    rest = without;
  }
  const [name] = found;
  if (name !== undefined) return found.size === 1 ? { name } : "unclear";
  return NOBODY.some((word) => answer.search(wordPattern(word)) >= 0) ? "nobody" : "unclear";
}
