import type { SearchTerm } from "../../session/search.ts";

const TRIGRAMS_OF_TERM_MAX = 24;

/**
 * Adds a number for every three characters of a text that follow each other. Different ones may share a number, and the
 * text is taken in lower case as a search compares it, so that nothing that matches is ever missed.
 */
export function addTrigrams(numbers: Set<number>, text: string): void {
  const lower = text.toLowerCase();
  for (let end = 2; end < lower.length; end++) numbers.add(numberAt(lower, end));
}

/** The numbers that every text containing a term has; null for a term that only reading can find. */
export function trigramsOf(term: SearchTerm): string | null {
  if (term.type !== "text" || term.text.length < 3) return null;
  const count = term.text.length - 2;
  const step = Math.ceil(count / TRIGRAMS_OF_TERM_MAX);
  const numbers = new Set<number>();
  for (let start = 0; start < count; start += step) numbers.add(numberAt(term.text, start + 2));
  return arrayOf(numbers);
}

/** Numbers as PostgreSQL writes an array. */
export function arrayOf(numbers: Iterable<number>): string {
  return `{${[...numbers].join(",")}}`;
}

function numberAt(text: string, end: number): number {
  const [first, second, third] = [text.charCodeAt(end - 2), text.charCodeAt(end - 1), text.charCodeAt(end)];
  return (Math.imul(Math.imul(first, 0x9e3779b1) + second, 0x85ebca6b) + third) | 0;
}
