import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join } from "node:path";
import { chromiumMissing, launchChromium } from "./chromium.mjs";
import { installCases } from "./install-cases.mjs";
import { startPostgres } from "./postgres.mjs";
import { followRecipe, readRecipes, usesPostgres } from "./recipes.mjs";
import { root } from "./run.mjs";
import { nodePackage } from "./setup.mjs";

/** @typedef {import("./install-cases.mjs").InstallCase} InstallCase */

const COMMAND_MS_MAX = 300_000;
const OUTPUT_SHOWN = 1500;

/**
 * Packs the package, installs it into empty folders, alone and beside other packages, and uses it there with the real
 * tools. Prints the progress and a table. Resolves to true if every case passed.
 * @param {string} only a part of the names of the cases to run; an empty text for all
 */
export async function checkInstall(only) {
  const place = mkdtempSync(join(tmpdir(), "skein-install-"));
  try {
    const [packed] = JSON.parse(
      await command(["npm", "pack", "--json", "--ignore-scripts", "--pack-destination", place], root),
    );
    const tarball = join(place, packed.filename);
    const cases = [
      ...installCases.map((each) => ({
        name: each.name,
        attempt: (/** @type {string} */ folder) => tryCase(each, tarball, folder),
      })),
      ...readRecipes().map((recipe) => ({
        name: `recipe ${recipe.name}`,
        attempt: (/** @type {string} */ folder) => tryRecipe(recipe, tarball, folder),
      })),
    ].filter(({ name }) => name.includes(only));
    const rows = [];
    for (const [index, { name, attempt }] of cases.entries()) {
      console.log(`${index + 1} of ${cases.length}: ${name}`);
      rows.push(await rowOf(name, attempt, join(place, String(index))));
    }
    console.log(
      ["", "| case | packages | seconds | |", "|---|---|---|---|", ...rows.map(({ line }) => line), ""].join("\n"),
    );
    return rows.length > 0 && rows.every(({ well }) => well);
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
}

/**
 * @param {string} name
 * @param {(folder: string) => Promise<readonly string[]>} attempt resolves to the installed packages
 * @param {string} folder
 */
async function rowOf(name, attempt, folder) {
  const startedAt = Date.now();
  let problem = "";
  let versions = "";
  mkdirSync(folder);
  try {
    versions = (await attempt(folder)).map((each) => versionOf(each, folder)).join(", ");
  } catch (error) {
    problem = error instanceof Error ? error.message : String(error);
    console.log(problem.slice(-OUTPUT_SHOWN));
  }
  rmSync(folder, { recursive: true, force: true });
  const seconds = Math.round((Date.now() - startedAt) / 1000);
  return {
    well: problem === "",
    line: `| ${name} | ${versions} | ${seconds} | ${problem === "" ? "well" : "FAILED"} |`,
  };
}

/**
 * @param {InstallCase} wanted
 * @param {string} tarball
 * @param {string} folder
 */
async function tryCase({ node, packages: others = [], removed = [], files = {}, commands }, tarball, folder) {
  const packages = node === undefined ? others : [...others, `${nodePackage()}@${node}`];
  const binaries = node === undefined ? "" : join(folder, "node_modules", nodePackage(), "bin");
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "module" }));
  await install([tarball, ...packages], folder);
  for (const each of removed) rmSync(join(folder, "node_modules", each), { recursive: true, force: true });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  for (const { run, prints, input = "" } of commands) {
    const printed = await command(run, folder, { input, binaries });
    if (prints !== undefined && !prints.test(printed)) throw new Error(`${run.join(" ")} printed:\n${printed}`);
  }
  return packages;
}

/**
 * @param {import("./recipes.mjs").Recipe} recipe
 * @param {string} tarball
 * @param {string} folder
 */
async function tryRecipe(recipe, tarball, folder) {
  const postgres = usesPostgres(recipe) ? await startPostgres() : null;
  /** @type {string[]} */
  const packages = [];
  try {
    /** @type {import("./recipes.mjs").Kitchen} */
    const kitchen = {
      folder,
      env: postgres === null ? {} : { DATABASE_URL: postgres.url },
      install: async (wanted) => {
        packages.push(...wanted.filter((name) => name !== "skein"));
        await install([tarball, ...packages], folder);
      },
    };
    await followRecipe(recipe, kitchen, recipe.name === "chat-service" ? visitChat : undefined);
    return packages;
  } finally {
    await postgres?.stop();
  }
}

/**
 * Sends a message on the page of the chat service in a browser, and reloads the page.
 * @param {string} url
 */
async function visitChat(url) {
  const missing = chromiumMissing();
  if (missing !== null) return console.log(`Not visited in a browser: ${missing}`);
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    await page.goto(`${url}/sign-in/ann`);
    await page.getByLabel("Message").fill("Hello?");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("ready").waitFor();
    const said = await page.getByRole("listitem").allTextContents();
    await page.reload();
    await page.getByText("ready").waitFor();
    const again = await page.getByRole("listitem").allTextContents();
    if (said.length !== 2 || said.join() !== again.join()) throw new Error(`The page said ${said}, then ${again}.`);
  } finally {
    await browser.close();
  }
}

/**
 * @param {readonly string[]} packages
 * @param {string} folder
 */
async function install(packages, folder) {
  await command(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", ...packages], folder);
}

/**
 * The name of the package with the version that npm has installed.
 * @param {string} wanted
 * @param {string} folder
 */
function versionOf(wanted, folder) {
  const name = wanted.replace(/(?<=.)@.*$/, "");
  const path = join(folder, "node_modules", name, "package.json");
  return existsSync(path) ? `${name} ${JSON.parse(readFileSync(path, "utf8")).version}` : wanted;
}

/**
 * Runs `node`, `npm`, `npx` or a program of a package installed in the folder; resolves to its output.
 * @param {readonly string[]} line
 * @param {string} cwd
 * @param {{ input?: string, binaries?: string }} [options] `binaries` is the folder of the Node to use; an empty text
 * means the Node of this process
 * @returns {Promise<string>}
 */
function command([program = "", ...args], cwd, { input = "", binaries = "" } = {}) {
  const node = binaries === "" ? process.execPath : join(binaries, basename(process.execPath));
  const path = { node, npm: "npm", npx: "npx" }[program] ?? join(cwd, "node_modules/.bin", program);
  return new Promise((resolve, reject) => {
    const child = spawn(path, args, {
      cwd,
      env: {
        ...process.env,
        PATH: `${dirname(node)}${delimiter}${process.env.PATH}`,
        // A separate home, so that no file of the user is read or written.
        SKEIN_HOME: join(cwd, "home"),
        NEXT_TELEMETRY_DISABLED: "1",
      },
      shell: process.platform === "win32" && program !== "node",
      timeout: COMMAND_MS_MAX,
    });
    let printed = "";
    let complained = "";
    child.stdout.on("data", (text) => {
      printed += text;
    });
    child.stderr.on("data", (text) => {
      complained += text;
    });
    child.on("error", reject);
    child.on("close", (code, signal) => {
      if (code === 0) resolve(printed);
      else reject(new Error(`${program} ${args[0] ?? ""} ended with ${signal ?? code}:\n${printed}${complained}`));
    });
    child.stdin.on("error", () => {});
    child.stdin.end(input);
  });
}
