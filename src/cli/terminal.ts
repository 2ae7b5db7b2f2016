/** Writes lines to a terminal or a pipe; colours only where they are seen. */
export interface Terminal {
  line(text?: string): void;
  bold(text: string): string;
  dim(text: string): string;
  green(text: string): string;
}

/** The terminal that is this program's standard output. */
export function openTerminal(options: { readonly colours?: boolean } = {}): Terminal {
  const { stdout } = process;
  // `hasColors` knows about NO_COLOR, FORCE_COLOR and the kind of terminal; a pipe has no such method.
  const colours = options.colours ?? (stdout.isTTY === true && stdout.hasColors());
  const paint = (code: number) => (text: string) => (colours ? `\u001b[${code}m${text}\u001b[0m` : text);
  return { line: (text = "") => void stdout.write(`${text}\n`), bold: paint(1), dim: paint(2), green: paint(32) };
}

/** A text of someone else's on one line, with nothing in it that could steer a terminal. */
export function printable(text: string, charactersMax = 100): string {
  const line = text
    .replace(/\s+/g, " ")
    // Controls, the bidirectional marks that can reorder what is shown, and halves of surrogate pairs.
    .replace(/[\p{Cc}\p{Bidi_Control}\p{Cs}]/gu, "\ufffd")
    .trim();
  return line.length <= charactersMax ? line : `${line.slice(0, charactersMax - 1)}…`;
}
