/**
 * Removes characters from the end of a text while a pattern for one character matches. This takes linear time, while
 * `text.replace(/x+$/, "")` takes quadratic time.
 */
export function dropEnd(text: string, unwanted: RegExp): string {
  let end = text.length;
  while (end > 0 && unwanted.test(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** Removes the full stop and blanks at the end of a sentence, to use it inside of another one. */
export function withoutStop(sentence: string): string {
  return dropEnd(sentence, /[.\s]/);
}
