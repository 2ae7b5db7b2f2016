import { readdirSync, readFileSync } from "node:fs";
import { extname, join, posix } from "node:path";
import { root } from "../scripts/run.mjs";
import { apiPages } from "./api-pages.mjs";
import { httpPage } from "./http-page.mjs";

/**
 * A page of the site.
 * @typedef {object} Page
 * @property {string} path the path from the root of the site, such as "docs/guides/runs.md"
 * @property {string} text the Markdown, with links to other pages of the site
 */

/**
 * Every page of the site: those of the repository, under the same paths, and the references that are generated from the
 * types and the server's routes.
 * @param {import("./http-page.mjs").OpenApiDocument} openApi
 * @returns {Page[]}
 */
export function sitePages(openApi) {
  const files = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", ...filesIn("docs", ".md")];
  const written = [...files.map(writtenPage), ...filesIn("examples", "").map(examplePage)];
  return [...written, ...folderPages(written), ...apiPages(), httpPage(openApi)];
}

/** The paths of the pictures that pages use. */
export function siteImages() {
  return [...filesIn("docs", ".png"), ...filesIn("docs", ".svg")];
}

/** @param {Page} page */
export function titleOf({ path, text }) {
  return /^# (?<title>.+)$/m.exec(text)?.groups?.title ?? path;
}

/**
 * An index page for each folder without a page, as code hosts show one.
 * @param {readonly Page[]} pages
 * @returns {Page[]}
 */
function folderPages(pages) {
  const folders = new Set(pages.map(({ path }) => posix.dirname(path)));
  return [...folders].flatMap((folder) => {
    const path = `${folder}/index.md`;
    if (folder === "." || pages.some((page) => page.path === path)) return [];
    const items = pages
      .filter((page) => posix.dirname(page.path) === folder)
      .map((page) => `- [${titleOf(page)}](${posix.basename(page.path)})`);
    const name = posix.basename(folder);
    return [{ path, text: `# ${name.charAt(0).toUpperCase()}${name.slice(1)}\n\n${items.join("\n")}\n` }];
  });
}

/**
 * @param {string} path
 * @returns {Page}
 */
function writtenPage(path) {
  return { path: path.replace(/README\.md$/, "index.md"), text: withSiteLinks(path, read(path)) };
}

/**
 * @param {string} path
 * @returns {Page}
 */
function examplePage(path) {
  const language = extname(path).replace(/^\.m?/, "") || "dockerfile";
  return { path: `${path}.md`, text: `# ${posix.basename(path)}\n\n\`\`\`\`${language}\n${read(path)}\`\`\`\`\n` };
}

/**
 * The text of a page, with links to READMEs and programs changed to their pages on the site.
 * @type {(page: string, text: string) => string}
 */
function withSiteLinks(page, text) {
  return text
    .split(/(```[\s\S]*?```|`[^`\n]*`)/)
    .map((part, index) => {
      // Every second part is code.
      if (index % 2 === 1) return part;
      return part.replace(/\]\((?!https?:|#)([^)#\s]+)/g, (link, /** @type {string} */ target) => {
        const aimed = posix.join(posix.dirname(page), target);
        if (aimed.endsWith("README.md")) return `](${target.replace(/README\.md$/, "index.md")}`;
        return aimed.startsWith("examples/") && !aimed.endsWith("/") ? `${link}.md` : link;
      });
    })
    .join("");
}

/** @param {string} path */
function read(path) {
  return readFileSync(join(root, path), "utf8");
}

/** @type {(folder: string, ending: string) => string[]} */
function filesIn(folder, ending) {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => posix.join(posix.relative(posixPath(root), posixPath(entry.parentPath)), entry.name))
    .sort();
}

/** @param {string} path */
function posixPath(path) {
  return path.replaceAll("\\", "/");
}
