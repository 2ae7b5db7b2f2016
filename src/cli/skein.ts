#!/usr/bin/env node
import { VERSION } from "../internal/version.ts";

// `--version`, and `skein` alone, do not load the rest of the program, which takes much longer than starting Node.
const args = process.argv.slice(2);
if (args.length === 1 && args[0] === "--version") console.log(VERSION);
else if (args.every((given) => given === "--no-color") && process.stdout.isTTY === true) await showOverview();
else await import("./main.ts");

async function showOverview(): Promise<void> {
  const { stdout, stderr } = process;
  try {
    const { printOverview } = await import("./overview.ts");
    await printOverview({ out: (text) => void stdout.write(text), colours: stdout.hasColors() && args.length === 0 });
  } catch (error) {
    stderr.write(`${(error as Error).message}\n`);
    process.exitCode = 1;
  }
  // A store that does not answer keeps its connection open.
  process.exit();
}
