import { execFile, spawnSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { commands } from "../../src/cli/commands.ts";
import { SHELLS } from "../../src/cli/commands/completion.ts";
import { makeDirectory } from "../moving/sample-store.ts";
import { skipBecause } from "../skip.ts";
import { runHere } from "./run-skein.ts";

const run = promisify(execFile);

function isMissing(shell: string): boolean {
  return spawnSync(shell, ["--version"]).error !== undefined;
}

/** A file with the completion script of a shell, as the program prints it. */
async function scriptFile(shell: string): Promise<string> {
  const { code, stdout } = await runHere(["completion", shell]);
  expect(code).toBe(0);
  const path = join(await makeDirectory(), `skein.${shell}`);
  await writeFile(path, stdout);
  return path;
}

test("bash completes commands, options and their values", async (context) => {
  if (isMissing("bash")) skipBecause(context, "bash is not installed");
  const path = await scriptFile("bash");
  // Each line is the input so far; its last word is to be completed.
  const typed = [
    "skein unde",
    "skein list --st",
    "skein list --status s",
    "skein help che",
    "skein completion f",
    "skein list --limit ",
    "skein merge --strategy ",
    "skein ",
  ];
  const ask = typed.map((line) => {
    const words = line.split(" ");
    return `COMP_WORDS=(${words.map((word) => `'${word}'`).join(" ")}); COMP_CWORD=${words.length - 1}; _skein; echo "\${COMPREPLY[*]}"`;
  });
  const { stdout } = await run("bash", ["--norc", "-uc", `source '${path}'\n${ask.join("\n")}`]);
  expect(stdout.trimEnd().split("\n")).toEqual([
    "undelete",
    "--status --store",
    "suspended",
    "checkpoint checkpoints",
    "fish",
    "",
    "append selective summary",
    [...commands.map(({ name }) => name), "help"].join(" "),
  ]);
});

test.for(SHELLS)("%s accepts its script", async (shell, context) => {
  if (isMissing(shell)) skipBecause(context, `${shell} is not installed`);
  const { stderr } = await run(shell, ["-n", await scriptFile(shell)]);
  expect(stderr).toBe("");
});
