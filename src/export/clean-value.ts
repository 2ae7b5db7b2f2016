/** Sequences that steer a terminal: colours and movements, titles and links, and single escapes. */
const TERMINAL =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to find.
  /[\u001b]\[[0-?]{0,64}[ -/]{0,8}[@-~]|[\u001b]\][^\u0007\u001b]{0,4096}(?:\u0007|\u001b\\)|[\u001b][@-Z\\-_]/g;
/** Controls other than tab and newline, and the marks that make a text show in another order than it is written. */
const CONTROLS = /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu;

/**
 * A text or a JSON value as a reader sees it: lines end in a newline, and nothing in it steers a terminal or turns the text
 * around. Keys stay.
 */
export function cleanValue<T>(value: T): T {
  return clean(value) as T;
}

function clean(value: unknown): unknown {
  if (typeof value === "string") return cleanText(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(clean);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clean(item)]));
}

function cleanText(text: string): string {
  return (
    text
      .replace(TERMINAL, "")
      // Markdown takes a lone carriage return for the end of a line.
      .replace(/\r\n?/g, "\n")
      .replace(CONTROLS, "")
      // Half of a surrogate pair is not a character.
      .replace(/\p{Cs}/gu, "\ufffd")
  );
}
