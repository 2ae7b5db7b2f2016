/** A piece of a terminal's output with one style. */
export interface AnsiPiece {
  readonly text: string;
  /** The names of the style, such as `bold` and `red`; empty for plain text. */
  readonly style: readonly string[];
}

const COLOURS = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;
// biome-ignore lint/suspicious/noControlCharactersInRegex: a style begins with the escape character.
const STYLE = /\u001b\[([0-9;]{0,40})m/g;
/** Output with more changes of style is shown with the escape sequences left out and without styles. */
const PIECES_MAX = 5000;

/** Splits terminal output at its colour sequences. Other escape sequences stay in the text. */
export function ansiPieces(text: string): readonly AnsiPiece[] {
  const pieces: AnsiPiece[] = [];
  let style: ReadonlySet<string> = new Set();
  let from = 0;
  const add = (to: number): void => {
    if (to > from) pieces.push({ text: text.slice(from, to), style: [...style] });
  };
  for (const found of text.matchAll(STYLE)) {
    if (pieces.length >= PIECES_MAX) return [{ text: text.replace(STYLE, ""), style: [] }];
    add(found.index);
    from = found.index + found[0].length;
    style = stepStyle(style, (found[1] ?? "").split(";").map(Number));
  }
  add(text.length);
  return pieces;
}

function stepStyle(style: ReadonlySet<string>, codes: readonly number[]): ReadonlySet<string> {
  const next = new Set(style);
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? 0;
    if (code === 0) next.clear();
    else if (code === 1) next.add("bold");
    else if (code === 2) next.add("dim");
    else if (code === 22) for (const name of ["bold", "dim"]) next.delete(name);
    // A colour of 256, or of red, green and blue: its numbers are skipped.
    else if (code === 38 || code === 48) at += codes[at + 1] === 5 ? 2 : 4;
    else if ((code >= 30 && code <= 39) || (code >= 90 && code <= 97)) {
      for (const name of COLOURS) next.delete(name);
      const name = COLOURS[code >= 90 ? code - 90 : code - 30];
      if (name !== undefined) next.add(name);
    }
  }
  return next;
}
