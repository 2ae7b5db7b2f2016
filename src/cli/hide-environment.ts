import { closeSync, openSync, readFileSync, writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
import { isSecretName } from "../export/secret-patterns.ts";
import { isInherited } from "../sandboxes/local/host-environment.ts";

/**
 * The fields of /proc/self/stat, counted after the program's name, with the start and the end address of the
 * environment.
 */
const ENVIRONMENT_START = 47;
const ENVIRONMENT_END = 48;

/**
 * Removes variables that commands do not inherit from what other processes can read of this process's environment. The
 * program itself still finds them in `process.env`. Call it once, before anything else runs.
 *
 * Linux shows a process's environment (`/proc/<pid>/environ`) as the memory that it was started with, which changing a
 * variable does not affect. So each variable is set again, which moves it elsewhere, and the original memory is
 * overwritten.
 *
 * @returns false if an API key can still be read there, as on systems where this is not possible.
 */
export function hideEnvironment(): boolean {
  try {
    // A worker thread only has a copy of the variables: setting them there would move nothing.
    if (process.platform === "linux" && isMainThread) overwrite();
  } catch {
    // Without such a /proc, the keys cannot be removed.
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
      // Setting a variable copies its value to newly allocated memory.
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
  // Shells keep the working directory in PWD and OLDPWD, whose names look like those of passwords.
  return isSecretName(name) && !/^(?:OLD)?PWD$/.test(name);
}

/** The environment that this process was started with, and its address in memory. */
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
