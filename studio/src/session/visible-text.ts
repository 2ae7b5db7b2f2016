// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what this looks for.
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** A text with what cannot be seen, or would turn the text around, as signs that can. */
export function visibleText(text: string): string {
  return text.replace(UNSEEN, (sign) => {
    const code = sign.charCodeAt(0);
    if (code < 0x20) return sign === "\r" ? "" : String.fromCharCode(0x2400 + code);
    return code === 0x7f ? "\u2421" : `<U+${code.toString(16).toUpperCase()}>`;
  });
}
