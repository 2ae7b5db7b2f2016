const CONTROLS =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is what this is for.
  /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g;

/**
 * A text with its control characters made visible, so that a terminal escape or a change of direction is seen as such.
 * Tabs and line ends stay as they are.
 */
export function visibleText(text: string): string {
  return text
    .replace(/\r\n/g, "\n")
    .replace(CONTROLS, (character) => `[U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}]`);
}
