/**
 * A text without the characters at its end that a pattern of one character matches. Linear, where `text.replace(/x+$/, "")`
 * is quadratic: it looks for the end anew from every character of every run.
 */
export function dropEnd(text: string, unwanted: RegExp): string {
  let end = text.length;
  while (end > 0 && unwanted.test(text.charAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

/** A sentence without its full stop and the blanks behind it, to go on in another sentence. */
export function withoutStop(sentence: string): string {
  return dropEnd(sentence, /[.\s]/);
}
