// Runs `skein import -` on what comes in at the standard input.
import { importCommand } from "../../../dist/cli/commands/import.js";
import { runProgram } from "../../../dist/cli/run-program.js";

process.exitCode = await runProgram([importCommand], ["import", "-", ...process.argv.slice(2)], {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  colours: false,
  watched: false,
  signal: new AbortController().signal,
});
