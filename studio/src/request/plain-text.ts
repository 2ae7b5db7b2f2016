// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the purpose.
const INVISIBLE = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** A text whose control characters and direction marks can be seen, and do nothing. */
export function plainText(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(INVISIBLE, nameOf);
}

function nameOf(character: string): string {
  const code = character.charCodeAt(0);
  return `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
}
