import { printableText } from "../terminal.ts";

/** Makes the pieces of a text harmless for a terminal, whatever was cut in two between them. */
export class PrintableStream {
  #held = "";

  /** The piece without what could steer a terminal; its end may be held back until the next piece. */
  add(piece: string): string {
    const text = this.#held + piece;
    // Half of a surrogate pair, or of a line's end.
    this.#held = /[\ud800-\udbff\r]$/.exec(text)?.[0] ?? "";
    return printableText(text.slice(0, text.length - this.#held.length));
  }

  /** What was held back. */
  end(): string {
    const rest = printableText(this.#held);
    this.#held = "";
    return rest;
  }
}
