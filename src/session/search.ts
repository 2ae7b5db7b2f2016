import { cutText } from "../internal/cut-text.ts";
import type { Entry } from "./log/entry.ts";
import { SessionError, show } from "./errors.ts";
import type { SessionHead } from "./log/fold.ts";
import { textOf } from "./message.ts";
import type { SearchMatch } from "./store.ts";

/** One condition of a search: a text to contain, in any case, or a pattern to match. */
export type SearchTerm =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "pattern"; readonly pattern: RegExp };

/** The most characters of a search. */
export const SEARCH_CHARACTERS_MAX = 1000;

const SNIPPET_CHARACTERS = 120;

/**
 * The terms of a search: words, `"exact phrases"`, or `re:<regex>`, which extends to the end of the line.
 *
 * @throws {SessionError} `INVALID_QUERY` for an empty or too long search, or a pattern that is not a regular
 * expression.
 */
export function parseSearch(query: string): SearchTerm[] {
  if (typeof query !== "string" || query.trim() === "")
    throw new SessionError("INVALID_QUERY", "The search is empty; give at least one word.");
  if (query.length > SEARCH_CHARACTERS_MAX) {
    throw new SessionError(
      "INVALID_QUERY",
      `The search has ${query.length} characters; it may have ${SEARCH_CHARACTERS_MAX}.`,
    );
  }
  const terms: SearchTerm[] = [];
  for (const match of query.matchAll(/(?<=^|\s)re:(?<pattern>.*)$|"(?<phrase>[^"]*)"|(?<word>[^\s"]+)/gs)) {
    const { pattern, phrase, word } = match.groups as { pattern?: string; phrase?: string; word?: string };
    if (pattern !== undefined) terms.push({ type: "pattern", pattern: compile(pattern.trim()) });
    else if ((phrase ?? word ?? "").trim() !== "")
      terms.push({ type: "text", text: (phrase ?? word ?? "").toLowerCase() });
  }
  if (terms.length === 0) throw new SessionError("INVALID_QUERY", "The search is empty; give at least one word.");
  return terms;
}

/** The position of a term in a text, or null. A caller with several terms also passes the text in lower case. */
export function findTerm(
  text: string,
  term: SearchTerm,
  lower: string = text.toLowerCase(),
): { readonly index: number; readonly length: number } | null {
  if (term.type === "text") {
    const index = lower.indexOf(term.text);
    return index < 0 ? null : { index, length: term.text.length };
  }
  const match = term.pattern.exec(text);
  return match === null ? null : { index: match.index, length: match[0].length };
}

/** The texts of a session that a search covers, in addition to its messages. */
export function headTexts(head: SessionHead): string[] {
  return [head.header.id, head.name, head.header.cwd].filter((text): text is string => text !== null);
}

/** The text of an entry that a search covers; empty for an entry without a user's or a model's words. */
export function entryText(entry: Entry): string {
  if (entry.type === "message") return textOf(entry.message.content);
  return entry.type === "custom_message" ? textOf(entry.content) : "";
}

/** The match to show for a message, with its surrounding text on one line. */
export function matchOf(
  entry: Pick<Entry, "id" | "seq">,
  text: string,
  found: { readonly index: number; readonly length: number },
): SearchMatch {
  const start = Math.max(0, found.index - Math.floor(SNIPPET_CHARACTERS / 3));
  const end = Math.min(text.length, start + SNIPPET_CHARACTERS);
  // A lone surrogate at a cut would not survive UTF-8.
  const whole = cutText(text, start, end).replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");
  const snippet = whole.replace(/\s+/g, " ").trim();
  return {
    entryId: entry.id,
    seq: entry.seq,
    text: `${start > 0 ? "…" : ""}${snippet}${end < text.length ? "…" : ""}`,
  };
}

function compile(pattern: string): RegExp {
  if (pattern === "")
    throw new SessionError("INVALID_QUERY", "The search has no pattern after re:, which would match everything.");
  try {
    return new RegExp(pattern, "iu");
  } catch (cause) {
    throw new SessionError("INVALID_QUERY", `${show(pattern)} is not a regular expression.`, { cause });
  }
}
