import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { descendantsOf, endProcess } from "./processes.mjs";

/** The folder that contains package.json. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** The time limit of a set-up step; shorter than the time that other processes wait for it. */
export const stepMinutesMax = 12;

/** A failure whose message is all that the user needs; no stack trace is printed. */
export class SetupError extends Error {}

/** A program exceeded its time limit. */
export class TimeLimitError extends SetupError {}

/**
 * Runs the body of a script; prints the message of a `SetupError` and sets exit code 1.
 * @param {() => Promise<number>} body resolves to the exit code
 */
export async function main(body) {
  try {
    requireNode();
    process.exitCode = await body();
  } catch (error) {
    console.error(error instanceof SetupError ? error.message : error);
    process.exitCode = 1;
  }
}

/** @type {NodeJS.Signals | null} */
let interruptedBy = null;

/**
 * Stops the script if it was interrupted while it ran a program, which may have ended normally.
 * @throws {SetupError}
 */
export function checkInterrupted() {
  if (interruptedBy !== null) throw new SetupError(`Stopped by ${interruptedBy}.`);
}

/**
 * @typedef {object} RunOptions
 * @property {Record<string, string>} [env]
 * @property {string} [cwd]
 * @property {boolean} [quiet] redirects the program's stdout to stderr
 * @property {(pid: number) => void} [started] called with its process id
 * @property {number} [minutesMax] the time limit, after which it and its descendants are killed
 */

/**
 * Runs a program to its end and resolves to its exit code. Signals to this process are forwarded to the program, so
 * that it never outlives this process.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {RunOptions} [options]
 * @returns {Promise<number>}
 */
export function run(command, args, { env = {}, cwd = root, quiet = false, started, minutesMax } = {}) {
  const name = basename(command === process.execPath ? (args[0] ?? command) : command);
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["inherit", quiet ? 2 : "inherit", "inherit"],
      // npm is a .cmd file on Windows, which only a shell can start.
      shell: process.platform === "win32" && command === "npm",
    });
    /** @param {NodeJS.Signals} signal */
    const forward = (signal) => {
      interruptedBy = signal;
      // At a terminal the child has already received the interrupt; a second one would mean "stop immediately".
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    };
    process.on("SIGINT", forward);
    process.on("SIGTERM", forward);
    let late = false;
    const end = () => {
      late = true;
      for (const { pid } of descendantsOf(child.pid ?? 0)) endProcess(pid);
      child.kill("SIGKILL");
    };
    const timer = minutesMax === undefined ? undefined : setTimeout(end, minutesMax * 60_000);
    const stop = () => {
      clearTimeout(timer);
      process.off("SIGINT", forward).off("SIGTERM", forward);
    };
    if (child.pid !== undefined) started?.(child.pid);
    child.on("error", (error) => {
      stop();
      reject(new SetupError(`Could not start ${command}: ${error.message}.`));
    });
    child.on("close", (code, signal) => {
      stop();
      if (late) reject(new TimeLimitError(`${name} took more than ${minutesMax} minutes, so it was ended.`));
      else if (code !== null) resolve(code);
      else reject(new SetupError(`${name} was stopped by ${signal}.`));
    });
  });
}

/**
 * Runs npm; the same one that started this script, if any.
 * @param {readonly string[]} args
 * @returns {Promise<number>}
 */
export function runNpm(args) {
  const started = process.env.npm_execpath ?? "";
  const options = { quiet: true, minutesMax: stepMinutesMax };
  if (basename(started) === "npm-cli.js") return run(process.execPath, [started, ...args], options);
  return run("npm", args, options);
}

/**
 * Runs a program of an installed package, by default with the current Node.
 * @param {string} file the path inside node_modules
 * @param {readonly string[]} args
 * @param {{ node?: string } & RunOptions} [options]
 * @returns {Promise<number>}
 */
export function runPackage(file, args, { node = process.execPath, ...options } = {}) {
  return run(node, [join(root, "node_modules", file), ...args], options);
}

function requireNode() {
  const wanted = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).engines.node.replace(">=", "");
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = wanted.split(".").map(Number);
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return;
  throw new SetupError(`Skein needs Node ${wanted} or newer; this is Node ${process.versions.node}.`);
}
