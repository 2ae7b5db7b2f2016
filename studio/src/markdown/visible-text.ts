const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: this expression is meant to find them.
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/** Replaces control characters and bidirectional marks by visible text. Tabs and line ends are kept. */
export function visibleText(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .replace(CONTROLS, (character) => `[U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}
