import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { root } from "./run.mjs";

/**
 * A step of a recipe: saving a file, or running commands that print what the page shows.
 * @typedef {{ file: string, text: string } | { commands: readonly string[], prints: string | null }} Step
 */
/** @typedef {{ name: string, steps: readonly Step[] }} Recipe */
/**
 * The environment for a recipe: `install` installs packages into the folder, `env` has the variables that the reader
 * would set.
 * @typedef {{ folder: string, install: (packages: readonly string[]) => Promise<void>, env?: Record<string, string> }} Kitchen
 */

const COMMAND_MS_MAX = 120_000;
/** The port on the pages; a test uses another one. */
const PORT = "3000";

/** All recipes of the pages. @type {() => Recipe[]} */
export const readRecipes = () =>
  readdirSync(join(root, "docs/recipes"))
    .filter((page) => page.endsWith(".md") && page !== "README.md")
    .map((page) => ({ name: page.slice(0, -3), steps: stepsOf(page) }));

/** Whether a recipe needs PostgreSQL, at `DATABASE_URL`. @type {(recipe: Recipe) => boolean} */
export const usesPostgres = ({ steps }) => steps.some((step) => "file" in step && step.text.includes("DATABASE_URL"));

/**
 * Parses a page: blocks with a title are files, `sh` blocks are commands, and a `text` block is the output of the
 * commands before it.
 * @param {string} page
 * @returns {Step[]}
 */
function stepsOf(page) {
  /** @type {Step[]} */
  const steps = [];
  const text = readFileSync(join(root, "docs/recipes", page), "utf8");
  for (const [, language = "", title, block = ""] of text.matchAll(
    /^```(\w+)(?: title="([^"]+)")?\n([\s\S]*?)^```$/gm,
  )) {
    const last = steps.at(-1);
    if (title !== undefined) steps.push({ file: title, text: block });
    else if (language === "sh") steps.push({ commands: block.trim().split("\n"), prints: null });
    else if (language === "text" && last !== undefined && "commands" in last && last.prints === null)
      steps.splice(-1, 1, { ...last, prints: block });
    else
      throw new Error(`${page} has a block (${language}) that is neither a file, nor commands, nor what they print.`);
  }
  return steps;
}

/**
 * Executes a recipe, and throws if a command fails or its output differs from the page. `visit` is called at the end,
 * with the URL of the server that the recipe has started.
 * @param {Recipe} recipe
 * @param {Kitchen} kitchen
 * @param {(url: string) => Promise<void>} [visit]
 */
export async function followRecipe({ steps }, { folder, install, env: given = {} }, visit) {
  const port = await freePort();
  const home = { SKEIN_HOME: join(folder, "home"), PORT: port, NO_COLOR: "1" };
  /** @type {Record<string, string>} */
  const env = { ...home, OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "", ...given };
  /** @type {Program[]} */
  const running = [];
  try {
    for (const step of steps) {
      if ("file" in step) {
        mkdirSync(dirname(join(folder, step.file)), { recursive: true });
        writeFileSync(join(folder, step.file), step.text);
        continue;
      }
      /** @type {Program[]} */
      const programs = [];
      for (const line of step.commands.map((each) => each.replace(/ +# .*$/, ""))) {
        const [, name, value = ""] = /^export (\w+)=(.*)$/.exec(line) ?? [];
        if (name !== undefined) env[name] ??= value;
        else if (line.startsWith("npm install ")) await install(line.split(" ").slice(2));
        else programs.push(startProgram(line, folder, env));
        const started = programs.at(-1);
        if (started !== undefined && line.endsWith(" &")) running.push(started);
        else await started?.ended;
      }
      if (step.prints !== null) await checkPrinted(programs, step.prints, port);
    }
    await visit?.(`http://localhost:${port}`);
  } finally {
    for (const program of running) program.stop();
    await Promise.all(running.map(({ ended }) => ended.catch(() => {})));
  }
}

/** @typedef {{ printed: string, complained: string, ended: Promise<void>, stop: () => void }} Program */

/**
 * Starts `node …` or `npx <package> …`, optionally with ` < file` and ` &` at the end.
 * @param {string} line
 * @param {string} cwd
 * @param {Record<string, string>} env
 * @returns {Program}
 */
function startProgram(line, cwd, env) {
  const [, command = "", input, behind] = /^(.*?)(?: < (\S+))?( &)?$/.exec(line) ?? [];
  const words = [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, ...found]) => found.join(""));
  const [program, name = ""] = words;
  if (program !== "node" && program !== "npx") throw new Error(`A recipe runs node and npx, not "${line}".`);
  const args = program === "node" ? words.slice(1) : [binaryOf(name, cwd), ...words.slice(2)];
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...process.env, ...env },
    ...(behind === undefined ? { timeout: COMMAND_MS_MAX } : {}),
  });
  child.stdin.on("error", () => {});
  child.stdin.end(input === undefined ? "" : readFileSync(join(cwd, input)));
  const closed = once(child, "close");
  /** @type {Program} */
  const started = {
    printed: "",
    complained: "",
    stop: () => child.kill(),
    ended: closed.then(([code, signal]) => {
      // A shell prints the same.
      if (signal === "SIGKILL") started.printed += "Killed\n";
      else if (code !== 0 && behind === undefined)
        throw new Error(`${line} ended with ${signal ?? code}:\n${started.printed}${started.complained}`);
    }),
  };
  child.stdout.on("data", (text) => {
    started.printed += text;
  });
  child.stderr.on("data", (text) => {
    started.complained += text;
  });
  return started;
}

/**
 * @param {string} name
 * @param {string} folder
 */
function binaryOf(name, folder) {
  const place = join(folder, "node_modules", name);
  const { bin } = JSON.parse(readFileSync(join(place, "package.json"), "utf8"));
  return join(place, typeof bin === "string" ? bin : bin[name]);
}

/**
 * Waits until the programs have printed what the page shows; "…" on the page matches anything.
 * @param {readonly Program[]} programs
 * @param {string} shown
 * @param {string} port
 */
async function checkPrinted(programs, shown, port) {
  const parts = shown
    .trim()
    .split("…")
    .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
  const wanted = new RegExp(`^${parts.join("[\\s\\S]*?")}$`);
  const printed = () =>
    programs
      .map((program) => program.printed)
      .join("")
      .replaceAll(`:${port}`, `:${PORT}`)
      .replace(/[ \t]+$/gm, "")
      .trim();
  // Programs that have ended print nothing more; the others are waited for.
  for (const endMs = Date.now() + COMMAND_MS_MAX; !wanted.test(printed()); await wait(20)) {
    const over = await Promise.race([Promise.all(programs.map(({ ended }) => ended)).then(() => true), wait(0, false)]);
    if (wanted.test(printed())) return;
    if (!over && Date.now() < endMs) continue;
    const complained = programs.map((program) => program.complained).join("");
    throw new Error(`The page shows\n${shown}\nand the programs print\n${printed()}\n${complained}`);
  }
}

async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  server.close();
  await once(server, "close");
  return String(port);
}
