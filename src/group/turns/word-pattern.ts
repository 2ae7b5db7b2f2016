/** Matches a word or a phrase in a text, ignoring case, if no letter or digit is directly before or after it. */
export function wordPattern(word: string, joins = ""): RegExp {
  const beside = `[\\p{L}\\p{N}\\p{M}_${joins}]`;
  return new RegExp(`(?<!${beside})${escaped(word)}(?!${beside})`, "giu");
}

/** Matches a text anywhere in another, ignoring case. */
export function textPattern(text: string): RegExp {
  return new RegExp(escaped(text), "giu");
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
