/** Prints lines to a terminal or a pipe, with colours only if they are shown. */
export interface Terminal {
  line(text?: string): void;
  bold(text: string): string;
  dim(text: string): string;
  green(text: string): string;
}

// Matches control characters, bidirectional marks that can reorder text, and halves of surrogate pairs.
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\p{Cs}]/gu;
const ESCAPE = "\u001b";
const COLOUR = new RegExp(`(${ESCAPE}\\[(?:0|1|2|32)m)`);
const CONTROLS_EXCEPT_LINES = /[^\P{Cc}\n\t]|[\p{Bidi_Control}\p{Cs}]/gu;

/** A terminal on this program's standard output. */
export function openTerminal(options: { readonly colours?: boolean } = {}): Terminal {
  const { stdout } = process;
  return createTerminal((text) => void stdout.write(text), options.colours ?? hasColours());
}

/** Whether the standard output shows colours. */
export function hasColours(): boolean {
  const { stdout } = process;
  // `hasColors` knows about NO_COLOR, FORCE_COLOR and the kind of terminal; a pipe has no such method.
  return stdout.isTTY === true && stdout.hasColors();
}

/**
 * A terminal that writes to a function. Control characters are replaced, except for its own colours; print texts of
 * others in colour only after `printable` or `printableText`.
 */
export function createTerminal(write: (text: string) => void, colours: boolean): Terminal {
  const paint = (code: number) => (text: string) => (colours ? `${ESCAPE}[${code}m${text}${ESCAPE}[0m` : text);
  const sanitize = colours ? keepColours : printableText;
  return { line: (text = "") => write(`${sanitize(text)}\n`), bold: paint(1), dim: paint(2), green: paint(32) };
}

function keepColours(text: string): string {
  // Odd parts are the colour codes.
  return text
    .split(COLOUR)
    .map((part, index) => (index % 2 === 1 ? part : printableText(part)))
    .join("");
}

/** An untrusted text on one line, without control characters. */
export function printable(text: string, charactersMax = 100): string {
  const line = text.replace(/\s+/g, " ").replace(CONTROLS, "\ufffd").trim();
  return line.length <= charactersMax ? line : `${line.slice(0, charactersMax - 1)}…`;
}

/** A time as tables show it: to the minute, in UTC. */
export function shortTime(time: string): string {
  return printable(time.slice(0, 16).replace("T", " "));
}

/** An untrusted text with its lines and tabs, but without other control characters. */
export function printableText(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(CONTROLS_EXCEPT_LINES, "\ufffd");
}

/** A count with its noun, singular or plural, as in "1 session" and "2 sessions". */
export function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
