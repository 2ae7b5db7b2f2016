import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The folder that holds package.json. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** A failure whose message is the one sentence that the user needs; no stack is printed. */
export class SetupError extends Error {}

/**
 * Runs a script's body, and turns a `SetupError` into its sentence and exit code 1.
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

/**
 * Runs a program to its end and resolves to its exit code. Signals sent to this process go to the program, so that
 * nobody ends up waiting for, or racing with, a program whose parent is gone.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ env?: Record<string, string>, cwd?: string, quiet?: boolean }} [options] `quiet` keeps stdout clean: what
 *   the program prints goes to stderr
 * @returns {Promise<number>}
 */
export function run(command, args, { env = {}, cwd = root, quiet = false } = {}) {
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
      // The terminal has told the child already; a second interrupt would read as "stop at once".
      if (signal !== "SIGINT" || !process.stdin.isTTY) child.kill(signal);
    };
    process.on("SIGINT", forward);
    process.on("SIGTERM", forward);
    const stop = () => process.off("SIGINT", forward).off("SIGTERM", forward);
    child.on("error", (error) => {
      stop();
      reject(new SetupError(`Could not start ${command}: ${error.message}.`));
    });
    child.on("close", (code, signal) => {
      stop();
      if (code !== null) resolve(code);
      else reject(new SetupError(`${basename(command)} was stopped by ${signal}.`));
    });
  });
}

/**
 * Runs npm; the one that started this script, if one did.
 * @param {readonly string[]} args
 * @returns {Promise<number>}
 */
export function runNpm(args) {
  const started = process.env.npm_execpath ?? "";
  if (basename(started) === "npm-cli.js") return run(process.execPath, [started, ...args], { quiet: true });
  return run("npm", args, { quiet: true });
}

/**
 * Runs a program of an installed package with a Node binary, by default this one.
 * @param {string} file path inside node_modules
 * @param {readonly string[]} args
 * @param {{ node?: string, env?: Record<string, string>, quiet?: boolean }} [options]
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
