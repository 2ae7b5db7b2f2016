/** Writes lines to a terminal or a pipe; colours only where they are seen. */
export interface Terminal {
  line(text?: string): void;
  bold(text: string): string;
  dim(text: string): string;
  green(text: string): string;
}

// Controls, the bidirectional marks that can reorder what is shown, and halves of surrogate pairs.
const STEERING = /[\p{Cc}\p{Bidi_Control}\p{Cs}]/gu;
const ESCAPE = "\u001b";
const COLOUR = new RegExp(`(${ESCAPE}\\[(?:0|1|2|32)m)`);
const STEERING_BUT_LINES = /[^\P{Cc}\n\t]|[\p{Bidi_Control}\p{Cs}]/gu;

/** The terminal that is this program's standard output. */
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
 * A terminal that writes to whatever takes texts. Of what could steer a terminal, only its own colours get through; who
 * prints a text of someone else's in colours calls `printable` or `printableText` on it first.
 */
export function createTerminal(write: (text: string) => void, colours: boolean): Terminal {
  const paint = (code: number) => (text: string) => (colours ? `${ESCAPE}[${code}m${text}${ESCAPE}[0m` : text);
  const harmless = colours ? withoutSteering : printableText;
  return { line: (text = "") => write(`${harmless(text)}\n`), bold: paint(1), dim: paint(2), green: paint(32) };
}

function withoutSteering(text: string): string {
  // The odd parts are the colours.
  return text
    .split(COLOUR)
    .map((part, index) => (index % 2 === 1 ? part : printableText(part)))
    .join("");
}

/** A text of someone else's on one line, with nothing in it that could steer a terminal. */
export function printable(text: string, charactersMax = 100): string {
  const line = text.replace(/\s+/g, " ").replace(STEERING, "\ufffd").trim();
  return line.length <= charactersMax ? line : `${line.slice(0, charactersMax - 1)}…`;
}

/** A time as tables show it: to the minute, in UTC. */
export function shortTime(time: string): string {
  return printable(time.slice(0, 16).replace("T", " "));
}

/** A text of someone else's with its lines and tabs as they are, and nothing else in it that could steer a terminal. */
export function printableText(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(STEERING_BUT_LINES, "\ufffd");
}

/** A number with the words for one or for any other number of things, as in "1 session" and "2 sessions". */
export function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}
