import type { SearchTerm } from "../../session/search.ts";

const TRIGRAMS_MAX = 24;

/**
 * A text as it goes into the index: in lower case as a search compares it, and without what SQLite would not take as
 * a character of its own. Both the index and the terms go through this, so nothing that matches is ever missed.
 */
export function trigramText(text: string): string {
  return (
    text
      .toLowerCase()
      // biome-ignore lint/suspicious/noControlCharactersInRegex: SQLite would end the text at a NUL.
      .replace(/\u0000/g, " ")
      .replace(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g, "\ufffd")
  );
}

/** The expression that finds every text containing a term; null for a term that the index cannot find. */
export function expressionOf(term: SearchTerm): string | null {
  if (term.type !== "text") return null;
  // A text may contain half a surrogate pair where the index sees the whole character.
  if (/^[\udc00-\udfff]|[\ud800-\udbff]$/.test(term.text)) return null;
  const characters = [...trigramText(term.text)];
  const count = characters.length - 2;
  if (count < 1) return null;
  const step = Math.max(1, Math.ceil(count / TRIGRAMS_MAX));
  const trigrams = new Set<string>();
  for (let start = 0; start < count; start += step) trigrams.add(characters.slice(start, start + 3).join(""));
  return [...trigrams].map((trigram) => `"${trigram.replaceAll('"', '""')}"`).join(" AND ");
}
