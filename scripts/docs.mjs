import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { main, root, SetupError } from "./run.mjs";
import { ensureBuild, ensurePackages, installAside } from "./setup.mjs";

const usage = `Usage: npm run docs [-- --serve] [--port number]

Builds the documentation as a site in site/dist: the pages of docs/, the references of the types and of the HTTP routes, the
examples, llms.txt and llms-full.txt, with a search that needs no network. A link that leads nowhere fails it.

  --serve        shows the site when it is built
  --port number  where (default 4118)`;

const vitePress = { packageName: "vitepress", version: "1.6.4" };
/** What people look for whose own words are other ones; each must lead to the glossary. */
const searchedWords = ["thread", "conversation", "checkpoint", "human in the loop", "interrupt", "delete user data"];
const staged = join(root, ".cache/site");
const built = join(root, "site/dist");

await main(async () => {
  const options = readOptions();
  if (options === null) return 0;
  await ensurePackages();
  await ensureBuild();
  const folder = await installAside(vitePress);
  const { build, serve } = await import(pathToFileURL(join(folder, "dist/node/index.js")).href);
  const { addTexts } = await stage();
  await build(staged);
  addTexts();
  await checkSearch(folder);
  console.log(`The site is in ${built}; npm run docs -- --serve shows it.`);
  if (!options.serve) return 0;
  await serve({ root: staged, port: Number(options.port) });
  return new Promise(() => {});
});

/** Writes the pages where VitePress looks for them; what the result adds to the site is beside the pages. */
async function stage() {
  const { readOpenApi } = await import("../site/http-page.mjs");
  const { siteImages, sitePages } = await import("../site/pages.mjs");
  const { contentsOf, llmsFullText, llmsText, sidebarOf } = await import("../site/contents.mjs");
  /** @type {{ description: string, version: string }} */
  const { description, version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const openApi = await readOpenApi();
  const pages = sitePages(openApi);
  const contents = contentsOf(pages);
  rmSync(staged, { recursive: true, force: true });
  rmSync(built, { recursive: true, force: true });
  for (const { path, text } of pages) writeAt(join(staged, path), text);
  for (const path of siteImages()) cpSync(join(root, path), join(staged, path));
  const config = configOf(`${description} Version ${version}.`, sidebarOf(contents, pages));
  writeAt(join(staged, ".vitepress/config.mjs"), `export default ${JSON.stringify(config, null, 2)};\n`);
  const addTexts = () => {
    for (const { path, text } of pages) writeAt(join(built, path), text);
    writeAt(join(built, "openapi.json"), JSON.stringify(openApi, null, 2));
    writeAt(join(built, "llms.txt"), llmsText(contents, pages, description));
    writeAt(join(built, "llms-full.txt"), llmsFullText(contents, pages));
  };
  return { addTexts };
}

/** @type {(description: string, sidebar: readonly object[]) => object} */
function configOf(description, sidebar) {
  const nav = [
    { text: "Documentation", link: "/docs/" },
    { text: "API", link: "/api/skein" },
    { text: "HTTP", link: "/http" },
    { text: "Examples", link: "/examples/" },
  ];
  return {
    title: "Skein",
    description,
    outDir: built,
    // Words such as <session> in the pages are no elements.
    markdown: { html: false },
    themeConfig: { nav, sidebar, search: { provider: "local" }, outline: { level: [2, 3] } },
  };
}

/**
 * Asks the search of the built site for the words of other people.
 * @param {string} folder of VitePress
 */
async function checkSearch(folder) {
  const chunks = join(built, "assets/chunks");
  const index = readdirSync(chunks).find((name) => name.startsWith("@localSearchIndexroot"));
  if (index === undefined) throw new SetupError("VitePress made no index for the search.");
  const { default: json } = await import(pathToFileURL(join(chunks, index)).href);
  const { default: MiniSearch } = await import(pathToFileURL(join(folder, "../minisearch/dist/es/index.js")).href);
  const search = MiniSearch.loadJSON(json, { fields: ["title", "titles", "text"], storeFields: ["title", "titles"] });
  const lost = searchedWords.filter((words) => {
    /** @type {{ id: string }[]} */
    const found = search.search(words, { fuzzy: 0.2, prefix: true, boost: { title: 4, text: 2, titles: 1 } });
    return !found.slice(0, 10).some(({ id }) => id.startsWith("/docs/glossary"));
  });
  if (lost.length > 0) throw new SetupError(`The search does not lead to the glossary for: ${lost.join(", ")}.`);
}

/** @type {(path: string, text: string) => void} */
function writeAt(path, text) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        serve: { type: "boolean", default: false },
        port: { type: "string", default: "4118" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    if (!values.help) return values;
    console.log(usage);
    return null;
  } catch (error) {
    throw new SetupError(`${/** @type {Error} */ (error).message}\n\n${usage}`);
  }
}
