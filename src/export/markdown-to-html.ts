import { closesFence, FENCE } from "./markdown-text.ts";

/** Inline Markdown in a longer paragraph is not rendered. */
const STYLED_CHARACTERS_MAX = 20_000;
const ITEM = /^\s{0,12}(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/s;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/s;

/**
 * Renders a subset of Markdown as HTML: paragraphs, fenced code, lists, headings; inline code, bold, italics and links.
 *
 * - The text is escaped before Markdown is parsed, so that it cannot produce other elements or attributes.
 * - Links lead to `http:`, `https:` and `mailto:` only.
 * - Headings start at `<h3>` and skip no level.
 * - Takes linear time.
 */
export function markdownToHtml(text: string): string {
  return new BlockReader(text.split("\n")).read();
}

class BlockReader {
  readonly #lines: readonly string[];
  readonly #out: string[] = [];
  #at = 0;
  #level = 2;

  constructor(lines: readonly string[]) {
    this.#lines = lines;
  }

  read(): string {
    while (this.#at < this.#lines.length) {
      const line = this.#lines[this.#at] as string;
      const [, opening] = FENCE.exec(line) ?? [];
      const heading = HEADING.exec(line);
      if (line.trim() === "") this.#at++;
      else if (opening !== undefined) this.#readCode(opening);
      else if (heading !== null) this.#readHeading(heading[1] as string, heading[2] as string);
      else if (ITEM.test(line)) this.#readList();
      else this.#readParagraph();
    }
    return this.#out.join("\n");
  }

  #readCode(opening: string): void {
    const code: string[] = [];
    for (this.#at++; this.#at < this.#lines.length; this.#at++) {
      const line = this.#lines[this.#at] as string;
      if (closesFence(line, opening)) break;
      code.push(line);
    }
    this.#at++;
    this.#out.push(`<pre dir="auto"><code>${escapeHtml(code.join("\n"))}</code></pre>`);
  }

  #readHeading(marks: string, text: string): void {
    this.#at++;
    this.#level = Math.min(marks.length + 2, this.#level + 1, 6);
    this.#out.push(`<h${this.#level} dir="auto">${inline(text)}</h${this.#level}>`);
  }

  #readList(): void {
    const first = ITEM.exec(this.#lines[this.#at] as string);
    const number = first?.[2];
    const items: string[][] = [];
    for (; this.#at < this.#lines.length; this.#at++) {
      const line = this.#lines[this.#at] as string;
      const item = ITEM.exec(line);
      if (item !== null) {
        if ((item[2] === undefined) !== (number === undefined)) break;
        items.push([item[3] as string]);
      } else if (/^\s+\S/.test(line) && !FENCE.test(line)) items.at(-1)?.push(line.trim());
      else break;
    }
    const tag = number === undefined ? "ul" : "ol";
    const start = number === undefined || Number(number) === 1 ? "" : ` start="${Number(number)}"`;
    const rows = items.map((item) => `<li dir="auto">${inline(item.join("\n"))}</li>`);
    this.#out.push(`<${tag}${start}>${rows.join("\n")}</${tag}>`);
  }

  #readParagraph(): void {
    const start = this.#at++;
    for (; this.#at < this.#lines.length; this.#at++) {
      const line = this.#lines[this.#at] as string;
      if (line.trim() === "" || FENCE.test(line) || HEADING.test(line) || ITEM.test(line)) break;
    }
    this.#out.push(`<p dir="auto">${inline(this.#lines.slice(start, this.#at).join("\n"))}</p>`);
  }
}

// No alternative may contain its own mark: each mark is read once, and the nesting depth is bounded.
const INLINE = new RegExp(
  [
    "(?<tick>`{1,3})(?!`)(?<code>[^`\\n]+)\\k<tick>(?!`)",
    "\\[(?<label>[^[\\]\\n]+)\\]\\((?<target>(?:https?://|mailto:)[^\\s()]+)\\)",
    "\\*\\*(?=\\S)(?<bold>[^*\\n]+)\\*\\*",
    "\\*(?=\\S)(?<italics>[^*\\n]+)\\*",
    "(?<![A-Za-z0-9_])_(?=\\S)(?<slanted>[^_\\n]+)_(?![A-Za-z0-9_])",
  ].join("|"),
  "gi",
);

function inline(text: string): string {
  const escaped = escapeHtml(text);
  return escaped.length > STYLED_CHARACTERS_MAX ? escaped : styled(escaped);
}

function styled(escaped: string): string {
  return escaped.replace(INLINE, (...found) => {
    const { code, label, target, bold, italics, slanted } = found.at(-1) as Readonly<
      Record<string, string | undefined>
    >;
    if (code !== undefined) return `<code>${code}</code>`;
    if (label !== undefined) return `<a href="${target}" rel="noopener noreferrer nofollow">${styled(label)}</a>`;
    if (bold !== undefined) return `<strong>${styled(bold)}</strong>`;
    return `<em>${styled((italics ?? slanted) as string)}</em>`;
  });
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Escapes a text for HTML, both in elements and in quoted attributes. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] as string);
}
