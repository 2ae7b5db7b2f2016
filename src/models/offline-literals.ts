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

const MARK = /\ue000(\d+)\ue001/g;
const ESCAPED: Readonly<Record<string, string>> = { n: "\n", t: "\t", '"': '"', "\\": "\\" };

/** Replaces what is quoted by marks. Takes time in proportion to the text, whatever it says. */
export function maskLiterals(text: string): MaskedText {
  const scanner = new QuoteScanner(text);
  const literals: Literal[] = [];
  const pieces: string[] = [];
  let copied = 0;
  for (let at = scanner.nextMark(0); at < text.length; at = scanner.nextMark(at)) {
    const found = scanner.literalAt(at);
    if (found === null) {
      at += 1;
      continue;
    }
    pieces.push(text.slice(copied, at), markOf(literals, found));
    at += found.raw.length;
    copied = at;
  }
  return { text: pieces.join("") + text.slice(copied), literals };
}

const OPENING = /[`"“'\ue000\ue001]/g;
const SPAN_END = /[`\n]/g;
const SINGLE_END = /['\n]/g;
const LANGUAGE_END = /[`\n]/g;
const WORD = /\w/;

/**
 * Finds what is quoted: a fence, a code span, double quotes (they may span lines), curly quotes, single quotes that are no
 * apostrophes, and characters that are marks here. A kind whose end is missing once is not looked for again.
 */
class QuoteScanner {
  readonly #text: string;
  #fences = true;
  #doubles = true;
  #curlies = true;

  constructor(text: string) {
    this.#text = text;
  }

  /** Where something quoted may begin, at a position or after it. */
  nextMark(from: number): number {
    return this.#find(OPENING, from) ?? this.#text.length;
  }

  literalAt(at: number): Literal | null {
    switch (this.#text.charAt(at)) {
      case "`":
        return this.#fence(at) ?? this.#span(at);
      case '"':
        return this.#double(at);
      case "“":
        return this.#curly(at);
      case "'":
        return this.#single(at);
      default:
        return this.#literal(at, at, at + 1, at + 1);
    }
  }

  #fence(at: number): Literal | null {
    if (!this.#fences || !this.#text.startsWith("```", at)) return null;
    const line = this.#find(LANGUAGE_END, at + 3);
    if (line === null || this.#text.charAt(line) !== "\n") return null;
    const end = this.#text.indexOf("```", line + 1);
    this.#fences = end >= 0;
    const language = this.#text
      .slice(at + 3, line)
      .trim()
      .toLowerCase();
    return end < 0 ? null : { ...this.#literal(at, line + 1, end, end + 3), language };
  }

  #span(at: number): Literal | null {
    const end = this.#find(SPAN_END, at + 1);
    if (end === null || end === at + 1 || this.#text.charAt(end) !== "`") return null;
    return this.#literal(at, at + 1, end, end + 1);
  }

  #double(at: number): Literal | null {
    if (!this.#doubles) return null;
    for (let end = at + 1; end < this.#text.length; end++) {
      const character = this.#text.charAt(end);
      if (character === "\\") end += 1;
      else if (character === '"') {
        const found = this.#literal(at, at + 1, end, end + 1);
        const says = found.says.replace(/\\(["\\nt])/g, (_, escaped: string) => ESCAPED[escaped] ?? escaped);
        return { ...found, says };
      }
    }
    // Quotes further on are all escaped, and from each of them the rest reads the same.
    this.#doubles = false;
    return null;
  }

  #curly(at: number): Literal | null {
    if (!this.#curlies) return null;
    const end = this.#text.indexOf("”", at + 1);
    this.#curlies = end >= 0;
    return end < 0 ? null : this.#literal(at, at + 1, end, end + 1);
  }

  #single(at: number): Literal | null {
    if (at > 0 && WORD.test(this.#text.charAt(at - 1))) return null;
    const end = this.#find(SINGLE_END, at + 1);
    if (end === null || this.#text.charAt(end) !== "'" || WORD.test(this.#text.charAt(end + 1))) return null;
    return this.#literal(at, at + 1, end, end + 1);
  }

  #literal(from: number, inner: number, innerEnd: number, end: number): Literal {
    return { raw: this.#text.slice(from, end), says: this.#text.slice(inner, innerEnd), language: "" };
  }

  #find(pattern: RegExp, from: number): number | null {
    pattern.lastIndex = from;
    return pattern.exec(this.#text)?.index ?? null;
  }
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
