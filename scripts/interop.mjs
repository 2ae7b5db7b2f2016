import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { withLock } from "./lock.mjs";
import { main, root, runNpm, SetupError } from "./run.mjs";
import { ensureBuild, ensureNode24, ensurePackages } from "./setup.mjs";

const usage = `Usage: npm run interop [-- --only format] [--record]

Runs the real programs whose sessions Skein reads and writes, offline, against a stand-in for the model's API: each has a
conversation with tools, Skein imports and exports it, and the program goes on with what Skein wrote.

  --only format  only this one: claude-code, codex, pi or opencode
  --record       keeps what the programs wrote as the fixtures of npm test, too`;

await main(async () => {
  const options = readOptions();
  if (options === null) return 0;
  await ensurePackages();
  await ensureBuild();
  const { programs } = await import("../test/interop/programs.mjs");
  const { tryProgram } = await import("../test/interop/try-program.mjs");
  const chosen = programs.filter(({ format }) => options.only === undefined || format === options.only);
  if (chosen.length === 0) throw new SetupError(`--only is "${options.only}", which is no program.\n\n${usage}`);
  for (const program of chosen) await tryProgram(program, await commandOf(program), options);
  return 0;
});

/**
 * Installs a program beside the project, never into it, and resolves to the command that starts it.
 * @param {import("../test/interop/programs.mjs").Program} program
 * @returns {Promise<string[]>}
 */
async function commandOf({ packageName, version, bin, onNode24 }) {
  const folder = join(root, ".cache/interop", `${packageName.replace("/", "+")}@${version}`);
  await withLock("interop", async () => {
    if (existsSync(folder)) return;
    console.error(`Installing ${packageName} ${version}.`);
    const made = `${folder}.part`;
    rmSync(made, { recursive: true, force: true });
    mkdirSync(made, { recursive: true });
    writeFileSync(join(made, "package.json"), '{ "private": true }\n');
    if ((await runNpm(["install", "--prefix", made, "--no-audit", "--no-fund", `${packageName}@${version}`])) !== 0)
      throw new SetupError(`npm could not install ${packageName} ${version}; its output is above.`);
    renameSync(made, folder);
  });
  const file = join(folder, "node_modules", packageName, bin);
  if (onNode24) return [await ensureNode24(), file];
  return file.endsWith(".js") ? [process.execPath, file] : [file];
}

function readOptions() {
  try {
    const { values } = parseArgs({
      options: {
        only: { type: "string" },
        record: { type: "boolean", default: false },
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
