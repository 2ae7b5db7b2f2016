import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";

/** A program in a separate process. */
export interface Running {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  /** The lines it has printed so far; one that was cut short is left out. */
  lines(): string[];
  /** Resolves when it has printed something more, or has ended. */
  more(): Promise<void>;
  readonly ended: Promise<void>;
}

/** Starts a program on the compiled package; `shell` is what runs before it in the same shell. It is ended with the test. */
export function start(name: string, args: readonly string[], shell = ""): Running {
  const command = [process.execPath, "--no-warnings", programPath(name), ...args];
  const words = shell === "" ? command : ["bash", "-c", `${shell}; exec "$@"`, "bash", ...command];
  const child = spawn(words[0] as string, words.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  // A killed process receives nothing more.
  child.stdin.on("error", () => {});
  onTestFinished(() => void child.kill("SIGKILL"));
  let text = "";
  let wake = (): void => {};
  const waitForMore = (): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve;
    });
  let pending = waitForMore();
  child.stdout.on("data", (data: Buffer) => {
    text += data.toString();
    wake();
    pending = waitForMore();
  });
  const ended = once(child, "close").then(() => wake());
  return { child, ended, more: () => pending, lines: () => text.split("\n").slice(0, -1) };
}

/** Runs a program to its end and returns its output. */
export async function runProgram(name: string, args: readonly string[], shell = ""): Promise<string[]> {
  const { lines, ended } = start(name, args, shell);
  await ended;
  return lines();
}

/** Sends a line to all programs at the same time, and resolves to the output of each before "end". */
export function askAll(programs: readonly Running[], line: string): Promise<string[][]> {
  const asked = programs.map(async ({ child, lines, more }) => {
    const before = lines().length;
    child.stdin.write(`${line}\n`);
    while (lines().slice(before).at(-1) !== "end") {
      if (child.exitCode !== null) throw new Error(`A program ended and said only ${lines().slice(before)}.`);
      await more();
    }
    return lines().slice(before, -1);
  });
  return Promise.all(asked);
}

/** The path of a program for a separate process, on the compiled package. */
export function programPath(name: string): string {
  const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));
  if (!existsSync(built)) throw new Error(`${built} is missing; run "npm run build" first, as "npm test" does.`);
  return fileURLToPath(new URL(name, new URL("./programs/", import.meta.url)));
}
