/** A piece of a text, and whether the search matches it. */
export interface MarkedPiece {
  readonly text: string;
  readonly marked: boolean;
}

const PIECES_MAX = 50;

/**
 * Splits a text into pieces and marks the words and "phrases" of a search. Matches of a `re:` pattern are not marked: a
 * pathological pattern could block the page.
 */
export function markedPieces(text: string, search: string): readonly MarkedPiece[] {
  const terms = termsOf(search);
  if (terms.length === 0) return [{ text, marked: false }];
  const pattern = new RegExp(terms.map((term) => term.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|"), "giu");
  const pieces: MarkedPiece[] = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(pattern)) {
    if (pieces.length >= PIECES_MAX) break;
    if (index > end) pieces.push({ text: text.slice(end, index), marked: false });
    pieces.push({ text: found, marked: true });
    end = index + found.length;
  }
  if (end < text.length) pieces.push({ text: text.slice(end), marked: false });
  return pieces;
}

/** How much of a text a preview surely shows, and how much of that is kept before the first match. */
const SHOWN_MIN = 44;
const BEFORE_MAX = 24;

/** A text from shortly before its first match on; the whole text without a match. */
export function fromFirstMatch(text: string, search: string): string {
  const [first, second] = markedPieces(text, search);
  if (first === undefined || second === undefined || first.marked) return text;
  if (first.text.length + second.text.length <= SHOWN_MIN) return text;
  return `…${text.slice(first.text.length - BEFORE_MAX).trimStart()}`;
}

/** The words and phrases of a search, longest first, so that a short one does not hide a longer one. */
function termsOf(search: string): readonly string[] {
  const plain = search.replace(/(?<=^|\s)re:.*$/s, "");
  const found = [...plain.matchAll(/"([^"]*)"|([^\s"]+)/g)].map(([, phrase, word]) => phrase ?? word ?? "");
  return found.filter((term) => term.trim() !== "").sort((a, b) => b.length - a.length);
}
