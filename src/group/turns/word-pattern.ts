/** Finds a word or a phrase in a text, in any case. Where it begins and ends, no letter or digit may stand beside it. */
export function wordPattern(word: string, joins = ""): RegExp {
  const beside = `[\\p{L}\\p{N}\\p{M}_${joins}]`;
  return new RegExp(`(?<!${beside})${escaped(word)}(?!${beside})`, "giu");
}

/** Finds a text anywhere in another, in any case. */
export function textPattern(text: string): RegExp {
  return new RegExp(escaped(text), "giu");
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
