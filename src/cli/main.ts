import { once } from "node:events";
import { createInterface } from "node:readline/promises";
import { SessionError } from "../index.ts";
import { hideEnvironment } from "./hide-environment.ts";
import { commands } from "./commands.ts";
import { type ProgramOutput, runProgram } from "./run-program.ts";
import { hasColours } from "./terminal.ts";

const keysHidden = hideEnvironment();
const { stdin, stdout, stderr } = process;
const interrupted = new AbortController();

const output: ProgramOutput = {
  out: (text) => void stdout.write(text),
  async room() {
    if (stdout.writableNeedDrain) await once(stdout, "drain");
  },
  err: (text) => void stderr.write(text),
  colours: hasColours(),
  ...(stdout.isTTY === true && { columns: stdout.columns }),
  watched: stderr.isTTY === true,
  signal: interrupted.signal,
  keysHidden,
  ...(stdin.isTTY === true && stderr.isTTY === true && { ask }),
};

async function ask(question: string): Promise<string> {
  const lines = createInterface({ input: stdin, output: stderr });
  try {
    return await lines.question(question, { signal: interrupted.signal });
  } finally {
    lines.close();
  }
}

// A second signal ends the program right away, as without a handler.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => interrupted.abort(new SessionError("ABORTED", "The command was interrupted.")));
}
stdout.on("error", (error: NodeJS.ErrnoException) => {
  // EPIPE: the reader has closed the pipe. On any other error the result is lost.
  if (error.code !== "EPIPE") stderr.write(`The output cannot be written: ${error.message}\n`);
  process.exit(error.code === "EPIPE" ? 0 : 1);
});
stderr.on("error", () => {});
process.exitCode = await runProgram(commands, process.argv.slice(2), output);
