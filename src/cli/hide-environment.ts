import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { isSecretName } from "../export/secret-patterns.ts";
import { isInherited } from "../sandboxes/local/host-environment.ts";

/** The fields of /proc/self/stat, counted after the program's name, that say where the environment begins and ends. */
const ENVIRONMENT_START = 47;
const ENVIRONMENT_END = 48;

/**
 * Takes out of what other processes can read of this one's environment all that a command is not given anyway. The
 * program itself still finds everything in `process.env`. Call it once, before anything else runs.
 *
 * Linux shows a process's environment (`/proc/<pid>/environ`) as the memory that it was started with, which no change of
 * a variable touches; so the variables are moved elsewhere and that memory is overwritten.
 *
 * @returns false when a key can still be read there, as on systems where this cannot be done.
 */
export function hideEnvironment(): boolean {
  try {
    // Another thread has a copy of the variables, so that it could move none.
    if (process.platform === "linux" && isMainThread) overwrite();
  } catch {
    // Without such a /proc the keys stay where they are.
  }
  return !showsKeys();
}

function overwrite(): void {
  const { at, bytes } = readOwn();
  const memory = openSync("/proc/self/mem", "r+");
  try {
    for (const { name, start, end } of entriesOf(bytes)) {
      if (isInherited(name)) continue;
      const value = process.env[name];
      // Setting a variable keeps it in memory of its own.
      if (value !== undefined) process.env[name] = value;
      writeSync(memory, Buffer.alloc(end - start), 0, end - start, at + start);
    }
  } finally {
    closeSync(memory);
  }
}

function showsKeys(): boolean {
  try {
    return [...entriesOf(readOwn().bytes)].some(({ name }) => isKey(name));
  } catch {
    return Object.keys(process.env).some(isKey);
  }
}

function isKey(name: string): boolean {
  // Shells keep the working directory in variables that are called like passwords.
  return isSecretName(name) && !/^(?:OLD)?PWD$/.test(name);
}

/** The environment that this process was started with, and where it is in its memory. */
function readOwn(): { readonly at: number; readonly bytes: Buffer } {
  const stat = readFileSync("/proc/self/stat", "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [at, end] = [Number(fields[ENVIRONMENT_START]), Number(fields[ENVIRONMENT_END])];
  const bytes = readFileSync("/proc/self/environ");
  if (!Number.isSafeInteger(end) || end - at < bytes.length)
    throw new RangeError("The environment is not where it says.");
  return { at, bytes };
}

function* entriesOf(bytes: Buffer): Generator<{ readonly name: string; readonly start: number; readonly end: number }> {
  for (let start = 0; start < bytes.length; ) {
    const zero = bytes.indexOf(0, start);
    const end = zero < 0 ? bytes.length : zero;
    const [name = ""] = bytes.toString("utf8", start, end).split("=", 1);
    if (end > start) yield { name, start, end };
    start = end + 1;
  }
}
