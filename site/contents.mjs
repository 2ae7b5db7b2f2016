import { posix } from "node:path";
import { titleOf } from "./pages.mjs";

/**
 * A section of the table of contents.
 * @typedef {object} Section
 * @property {string} title
 * @property {Item[]} items
 */
/**
 * @typedef {object} Item
 * @property {string} title
 * @property {string} path of its page; the path of a folder ends with a slash
 * @property {string} about a phrase, or empty
 */

/**
 * The table of contents: the sections of docs/README.md, and the references that exist only on the site.
 * @param {readonly import("./pages.mjs").Page[]} pages
 * @returns {Section[]}
 */
export function contentsOf(pages) {
  const written = pages.find(({ path }) => path === "docs/index.md")?.text ?? "";
  const [, ...parts] = written.split(/^## /m);
  const sections = parts.map((part) => ({
    title: part.slice(0, part.indexOf("\n")),
    items: [...part.matchAll(/^- \[(?<title>[^\]]+)\]\((?<target>[^)]+)\)(?:: (?<about>.+))?$/gm)].map(
      ({ groups }) => ({
        title: groups?.title ?? "",
        path: posix.join("docs", groups?.target ?? ""),
        about: groups?.about ?? "",
      }),
    ),
  }));
  const api = pages
    .filter(({ path }) => path.startsWith("api/skein"))
    .map((page) => ({ title: titleOf(page), path: page.path, about: "" }));
  const references = [
    { title: "HTTP reference", path: "http.md", about: "every route of the server" },
    { title: "Examples", path: "examples/", about: "numbered programs that check their own output" },
  ];
  return [...sections, { title: "API", items: api }, { title: "More", items: references }];
}

/**
 * The pages of an item in the table of contents.
 * @type {(item: Item, pages: readonly import("./pages.mjs").Page[]) => import("./pages.mjs").Page[]}
 */
export function pagesOf({ path }, pages) {
  return pages.filter((page) => (path.endsWith("/") ? page.path.startsWith(path) : page.path === path));
}

/**
 * The sidebar of VitePress; folders can be expanded.
 * @type {(sections: readonly Section[], pages: readonly import("./pages.mjs").Page[]) => object[]}
 */
export function sidebarOf(sections, pages) {
  return sections.map(({ title, items }) => ({
    text: title,
    items: items.map((item) => {
      const link = `/${item.path}`;
      if (!item.path.endsWith("/")) return { text: item.title, link };
      const inside = pagesOf(item, pages).filter(({ path }) => !path.endsWith("index.md"));
      const entries = inside.map((page) => ({ text: titleOf(page), link: `/${page.path}` }));
      return { text: item.title, link, collapsed: true, items: entries };
    }),
  }));
}

/**
 * llms.txt: the table of contents for models, with links to the pages as Markdown.
 * @type {(sections: readonly Section[], pages: readonly import("./pages.mjs").Page[], description: string) => string}
 */
export function llmsText(sections, pages, description) {
  const parts = sections.map(({ title, items }) => {
    const lines = items.flatMap((item) => {
      const inside = pagesOf(item, pages);
      if (item.path.endsWith("/")) return inside.map((page) => `- [${titleOf(page)}](/${page.path})`);
      return `- [${item.title}](/${item.path})${item.about && `: ${item.about}`}`;
    });
    return `## ${title}\n\n${lines.join("\n")}\n`;
  });
  return [`# Skein\n\n> ${description}\n`, ...parts].join("\n");
}

/**
 * llms-full.txt: all pages of the table of contents in one text.
 * @type {(sections: readonly Section[], pages: readonly import("./pages.mjs").Page[]) => string}
 */
export function llmsFullText(sections, pages) {
  const listed = sections.flatMap(({ items }) => items.flatMap((item) => pagesOf(item, pages)));
  return listed.map(({ path, text }) => `<!-- ${path} -->\n\n${text}`).join("\n");
}
