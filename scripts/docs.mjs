import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { main, root, SetupError } from "./run.mjs";
import { ensureBuild, ensurePackages, installAside } from "./setup.mjs";

const usage = `Usage: npm run docs [-- --serve] [--port number]

Builds the documentation as a site in site/dist: the pages of docs/, the references of the types and of the HTTP routes, the
examples, llms.txt and llms-full.txt, with a search that works offline. A broken link is an error.

  --serve        serves the site after the build
  --port number  where (default 4118)`;

const vitePress = { packageName: "vitepress", version: "1.6.4" };
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

/** Writes the pages where VitePress expects them; other files of the site are written to `built`. */
async function stage() {
  const { readOpenApi } = await import("../site/http-page.mjs");
  const { siteImages, sitePages } = await import("../site/pages.mjs");
  const { contentsOf, llmsFullText, llmsText, sidebarOf } = await import("../site/contents.mjs");
  /** @type {{ description: string }} */
  const { description } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const openApi = await readOpenApi();
  const pages = sitePages(openApi);
  const contents = contentsOf(pages);
  rmSync(staged, { recursive: true, force: true });
  rmSync(built, { recursive: true, force: true });
  for (const { path, text } of pages) writeAt(join(staged, path), text);
  for (const path of siteImages()) cpSync(join(root, path), join(staged, path));
  const site = { description, sidebar: sidebarOf(contents, pages), outDir: built };
  const module = JSON.stringify(pathToFileURL(join(root, "site/site-config.mjs")).href);
  const config = `import { siteConfig } from ${module};\n\nexport default siteConfig(${JSON.stringify(site, null, 2)});\n`;
  writeAt(join(staged, ".vitepress/config.mjs"), config);
  const addTexts = () => {
    for (const { path, text } of pages) writeAt(join(built, path), text);
    writeAt(join(built, "openapi.json"), JSON.stringify(openApi, null, 2));
    writeAt(join(built, "llms.txt"), llmsText(contents, pages, description));
    writeAt(join(built, "llms-full.txt"), llmsFullText(contents, pages));
  };
  return { addTexts };
}

/**
 * Searches the built site for the terms of other projects in the glossary; each must lead to the glossary.
 * @param {string} folder of VitePress
 */
async function checkSearch(folder) {
  const { searchOptions } = await import("../site/site-config.mjs");
  const chunks = join(built, "assets/chunks");
  const index = readdirSync(chunks).find((name) => name.startsWith("@localSearchIndexroot"));
  if (index === undefined) throw new SetupError("VitePress created no search index.");
  const { default: json } = await import(pathToFileURL(join(chunks, index)).href);
  const { default: MiniSearch } = await import(pathToFileURL(join(folder, "../minisearch/dist/es/index.js")).href);
  const search = MiniSearch.loadJSON(json, { fields: ["title", "titles", "text"] });
  const [, table = ""] = readFileSync(join(root, "docs/glossary.md"), "utf8").split("| you say |");
  const words = [...table.matchAll(/^\| (?<said>[^|-][^|]*) \|/gm)].flatMap(
    ({ groups }) => groups?.said?.split(", ") ?? [],
  );
  const lost = words.filter((each) => {
    /** @type {{ id: string }[]} */
    const found = search.search(each, searchOptions);
    return !found.slice(0, 3).some(({ id }) => id.startsWith("/docs/glossary"));
  });
  if (words.length === 0 || lost.length > 0)
    throw new SetupError(`The search does not lead to the glossary for: ${lost.join(", ") || "any word"}.`);
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
