import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command, CommandContext } from "../../command.ts";
import { type DocPage, type DocSection, findDocPart, readDocPages } from "../../docs/doc-pages.ts";
import { htmlOfPage, printMarkdown } from "../../docs/print-page.ts";
import { type DocHit, indexDocs, searchDocs } from "../../docs/search-docs.ts";
import { DOCS } from "../../package-files.ts";

const HITS_MAX = 6;
/** Programs that open a file as the user has chosen, by platform. */
const OPENERS: Readonly<Record<string, readonly string[]>> = {
  darwin: ["open"],
  win32: ["cmd", "/c", "start", ""],
};

/** Searches and shows the documentation. */
export const docs: Command = {
  name: "docs",
  summary: "Search the documentation of this version, and show its pages.",
  details:
    "Words find pages, the best one first; the name of a page, such as guides/runs or runs#telemetry, shows it. Without either, it lists the pages. Nothing is sent anywhere: the pages are in the package.",
  arguments: [{ name: "words", optional: true, repeated: true, what: "the words to find, or the name of a page" }],
  options: { open: { what: "open the page, or the best one found, in the browser" } },
  examples: [
    { line: "skein docs budget per user", what: "find the pages about it, and show the best section" },
    { line: "skein docs runs#telemetry", what: "show a section" },
    { line: "skein docs guides/tools --open", what: "read a page in the browser" },
  ],
  json: {
    pages: "the pages, the best first: page, title, about, heading, anchor and text (of the best section)",
  },
  store: "none",
  readsOnly: true,
  async run(context) {
    const pages = await readDocPages(DOCS);
    const words = context.positionals.join(" ").trim();
    const part = words === "" || /\s/.test(words) ? null : findDocPart(pages, words);
    if (part !== null) return showPart(context, part);
    const hits = words === "" ? [] : searchDocs(indexDocs(pages), words, HITS_MAX);
    if (words !== "" && hits.length === 0) {
      if (context.json) context.printJson({ pages: [] });
      context.fail(`No page has these words; use other ones, or skein docs for the list of pages.`);
      return 1;
    }
    const [best] = hits;
    if (context.values["open"] === true) return openPage(context, best?.page ?? findDocPart(pages, "README")?.page);
    if (context.json) context.printJson({ pages: words === "" ? pages.map(pageJson) : hits.map(hitJson) });
    else if (best === undefined) listPages(context, pages);
    else showHits(context, hits, best);
    return 0;
  },
};

function showPart(
  context: CommandContext,
  { page, sections }: { readonly page: DocPage; readonly sections: readonly DocSection[] },
): number | Promise<number> {
  if (context.values["open"] === true) return openPage(context, page);
  const text = sections.map((section) => section.text).join("\n\n");
  const { heading, anchor } = sections[0] as DocSection;
  if (context.json) context.printJson({ pages: [{ ...pageJson(page), heading, anchor, text }] });
  else printMarkdown(context.terminal, text);
  return 0;
}

function showHits({ terminal }: CommandContext, hits: readonly DocHit[], best: DocHit): void {
  for (const { page, section } of hits) {
    const { heading, anchor } = section;
    terminal.line(
      `${terminal.bold(page.name)}${anchor === "" ? "" : `#${anchor}`}  ${terminal.dim(anchor === "" ? page.title : `${page.title}: ${heading}`)}`,
    );
  }
  terminal.line();
  printMarkdown(terminal, best.section.text);
  terminal.line();
  terminal.line(terminal.dim(`The whole page: skein docs ${best.page.name}`));
}

function listPages({ terminal }: CommandContext, pages: readonly DocPage[]): void {
  for (const { name, title, about } of pages)
    terminal.line(`${terminal.bold(name)}  ${about === "" ? title : `${title}: ${about}`}`);
}

function pageJson({ name, title, about, sections }: DocPage): object {
  return { page: name, title, about, heading: title, anchor: "", text: sections[0]?.text ?? "" };
}

function hitJson({ page, section: { heading, anchor, text } }: DocHit): object {
  return { ...pageJson(page), heading, anchor, text };
}

/** Writes a page as HTML to a directory of its own, and opens it with the program that the user has chosen for that. */
async function openPage(context: CommandContext, page: DocPage | undefined): Promise<number> {
  const { title, name, sections } = page as DocPage;
  const path = join(await mkdtemp(join(tmpdir(), "skein-docs-")), `${name.replaceAll("/", "-")}.html`);
  await writeFile(path, htmlOfPage(title, sections.map(({ text }) => text).join("\n\n")), { mode: 0o600 });
  const [program = "", ...args] = OPENERS[process.platform] ?? ["xdg-open"];
  const child = spawn(program, [...args, path], { stdio: "ignore", detached: true });
  const isStarted = await once(child, "spawn").then(
    () => true,
    () => false,
  );
  child.unref();
  if (context.json) context.printJson({ pages: [pageJson(page as DocPage)] });
  else context.print(path);
  if (!isStarted) context.fail(`No browser could be started with ${program}; open the file yourself.`);
  return isStarted ? 0 : 1;
}
