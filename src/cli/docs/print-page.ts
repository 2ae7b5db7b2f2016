import { escapeHtml, markdownToHtml } from "../../export/markdown-to-html.ts";
import { HTML_STYLE } from "../../export/html-style.ts";
import { wrap } from "../help.ts";
import type { Terminal } from "../terminal.ts";
import { plainText } from "./doc-pages.ts";

const WIDTH = 100;

/** A part of a page that is rendered in one way. */
type Block =
  | { readonly kind: "heading" | "code" | "paragraph" | "item"; readonly lines: readonly string[] }
  | { readonly kind: "table"; readonly rows: readonly (readonly string[])[] };

/** Prints Markdown to a terminal: headings in bold, paragraphs wrapped, tables as lists of their rows. */
export function printMarkdown(terminal: Terminal, text: string): void {
  for (const [index, block] of blocksOf(text).entries()) {
    if (index > 0 && block.kind !== "item") terminal.line();
    if (block.kind === "table") printTable(terminal, block.rows);
    else if (block.kind === "code") printCode(terminal, block.lines);
    else if (block.kind === "heading")
      terminal.line(terminal.bold(plainText(block.lines.join(" ").replace(/^#+ /, ""))));
    else {
      const words = plainText(block.lines.map((line) => line.trim()).join(" "));
      const [first = "", ...rest] = wrap(words, { width: WIDTH - (block.kind === "item" ? 2 : 0) });
      const indent = block.kind === "item" ? "  " : "";
      for (const line of [first, ...rest.map((each) => indent + each)]) terminal.line(line);
    }
  }
}

/** The lines between the fences, after the title of the block. */
function printCode(terminal: Terminal, [fence = "", ...lines]: readonly string[]): void {
  const title = / title="([^"]+)"/.exec(fence)?.[1];
  if (title !== undefined) terminal.line(`    ${terminal.dim(title)}`);
  for (const line of lines.slice(0, -1)) terminal.line(`    ${line}`);
}

function printTable(terminal: Terminal, [head = [], ...rows]: readonly (readonly string[])[]): void {
  const isTitled = head.some((cell) => cell !== "");
  if (isTitled) terminal.line(terminal.dim(head.map(plainText).join(" · ")));
  for (const [first = "", ...rest] of rows) {
    terminal.line(`  ${terminal.bold(plainText(first))}`);
    const cells = rest.filter((cell) => cell !== "").map(plainText);
    if (cells.length > 0) for (const line of wrap(cells.join(" · "), { width: WIDTH, indent: 6 })) terminal.line(line);
  }
}

/** A page as one HTML file, which loads nothing. */
export function htmlOfPage(title: string, text: string): string {
  const body = blocksOf(text).map((block) => {
    if (block.kind !== "table") return markdownToHtml(block.lines.join("\n"));
    const rows = block.rows.map((row, index) => {
      const tag = index === 0 ? "th" : "td";
      return `<tr>${row.map((cell) => `<${tag}>${markdownToHtml(cell)}</${tag}>`).join("")}</tr>`;
    });
    return `<table>${rows.join("\n")}</table>`;
  });
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>${escapeHtml(title)}</title><style>${HTML_STYLE}</style></head><body><main>
${body.join("\n")}
</main></body></html>
`;
}

function blocksOf(text: string): readonly Block[] {
  const blocks: Block[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; ) {
    const line = lines[at] as string;
    const from = at++;
    const take = (isPart: (each: string) => boolean) => {
      while (at < lines.length && isPart(lines[at] as string)) at++;
      return lines.slice(from, at);
    };
    if (line.trim() === "") continue;
    if (line.startsWith("```")) {
      const code = take((each) => !each.startsWith("```"));
      at++;
      blocks.push({ kind: "code", lines: [...code, "```"] });
    } else if (/^#+ /.test(line)) blocks.push({ kind: "heading", lines: [line] });
    else if (line.startsWith("|")) blocks.push({ kind: "table", rows: rowsOf(take((each) => each.startsWith("|"))) });
    else if (/^(- |\d+\. )/.test(line)) blocks.push({ kind: "item", lines: take((each) => /^\s+\S/.test(each)) });
    else
      blocks.push({ kind: "paragraph", lines: take((each) => each.trim() !== "" && !/^(```|#+ |\||- )/.test(each)) });
  }
  return blocks;
}

function rowsOf(lines: readonly string[]): readonly (readonly string[])[] {
  const rows = lines.filter((line) => !/^\|[\s:|-]+\|$/.test(line));
  // A bar in code is written as `\|` in a table.
  return rows.map((line) =>
    line
      .slice(1, -1)
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim().replaceAll("\\|", "|")),
  );
}
