/** A text whose quoted parts are replaced by marks, so that they are not parsed as instructions. */
export interface MaskedText {
  readonly text: string;
  readonly literals: readonly Literal[];
}

/** A quoted part: `raw` with its quotes, `says` without them. */
export interface Literal {
  readonly raw: string;
  readonly says: string;
  /** The info string of a code fence; empty for other quotes. */
  readonly language: string;
}

const MARK = /\ue000(\d+)\ue001/g;
const ESCAPED: Readonly<Record<string, string>> = { n: "\n", t: "\t", '"': '"', "\\": "\\" };

/** Replaces quoted parts by marks. Takes linear time, whatever the text. */
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
 * Finds quoted parts: code fences, code spans, double quotes (also over several lines), curly quotes, single quotes that are
 * not apostrophes, and characters that equal our marks. If the end of a kind is missing once, that kind is not searched again.
 */
class QuoteScanner {
  readonly #text: string;
  #fences = true;
  #doubles = true;
  #curlies = true;

  constructor(text: string) {
    this.#text = text;
  }

  /** The next position, from `from` on, where a quoted part may begin. */
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
    // All later quotes are escaped: searching from one of them would fail in the same way.
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

/** Adds a literal and returns its mark. */
export function markOf(literals: Literal[], literal: Literal): string {
  return `\ue000${literals.push(literal) - 1}\ue001`;
}

/** The literal, if the text consists of exactly one; else null. */
export function soleLiteral(text: string, literals: readonly Literal[]): Literal | null {
  const index = /^\ue000(\d+)\ue001$/.exec(text.trim())?.[1];
  return index === undefined ? null : (literals[Number(index)] ?? null);
}

/** Puts the quoted parts back into a text. */
export function unmask(text: string, literals: readonly Literal[]): string {
  return text.replace(MARK, (_, index: string) => literals[Number(index)]?.raw ?? "");
}

/** The text of an argument: the inside of a quoted one, else the text itself. */
export function argumentText(text: string, literals: readonly Literal[]): string {
  return soleLiteral(text, literals)?.says ?? unmask(text.trim(), literals);
}
