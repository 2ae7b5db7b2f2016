/** A text whose quoted parts are replaced by marks, so that what they say is not taken for an instruction. */
export interface MaskedText {
  readonly text: string;
  readonly literals: readonly Literal[];
}

/** A quoted part: as it stands in the text, and what it says. */
export interface Literal {
  readonly raw: string;
  readonly says: string;
  /** The word behind an opening code fence. */
  readonly language: string;
}

// A fence, a code span, double quotes (they may span lines), curly quotes, single quotes that are no apostrophes, or a
// character that we use as a mark ourselves.
const QUOTED =
  /```(?<language>[^\n`]*)\n(?<fence>[\s\S]*?)```|`(?<span>[^`\n]+)`|"(?<double>(?:[^"\\]|\\[\s\S])*)"|“(?<curly>[^”]*)”|(?<!\w)'(?<single>[^'\n]*)'(?!\w)|[\ue000\ue001]/g;
const MARK = /\ue000(\d+)\ue001/g;
const ESCAPED: Readonly<Record<string, string>> = { n: "\n", t: "\t", '"': '"', "\\": "\\" };

/** Replaces what is quoted by marks. */
export function maskLiterals(text: string): MaskedText {
  const literals: Literal[] = [];
  const masked = text.replace(QUOTED, (raw: string, ...rest: unknown[]) => {
    const groups = rest.at(-1) as Readonly<Record<string, string | undefined>>;
    const double = groups.double?.replace(/\\(["\\nt])/g, (_, escaped: string) => ESCAPED[escaped] ?? escaped);
    const says = groups.fence ?? groups.span ?? double ?? groups.curly ?? groups.single ?? raw;
    return markOf(literals, { raw, says, language: groups.language?.trim().toLowerCase() ?? "" });
  });
  return { text: masked, literals };
}

/** The mark of one more literal. */
export function markOf(literals: Literal[], literal: Literal): string {
  return `\ue000${literals.push(literal) - 1}\ue001`;
}

/** The literal that a text consists of, or null when there is more to it. */
export function soleLiteral(text: string, literals: readonly Literal[]): Literal | null {
  const index = /^\ue000(\d+)\ue001$/.exec(text.trim())?.[1];
  return index === undefined ? null : (literals[Number(index)] ?? null);
}

/** A text with its quoted parts as they stood. */
export function unmask(text: string, literals: readonly Literal[]): string {
  return text.replace(MARK, (_, index: string) => literals[Number(index)]?.raw ?? "");
}

/** What an argument says: the inside of a quoted one, else the words as they stand. */
export function argumentText(text: string, literals: readonly Literal[]): string {
  return soleLiteral(text, literals)?.says ?? unmask(text.trim(), literals);
}
