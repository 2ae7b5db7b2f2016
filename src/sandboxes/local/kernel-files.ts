import { type Dirent, lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";

const PROCESS = /^\d+$/;
const WRITABLE = 0o222;
const READABLE = 0o004;
/** World-readable entries of `/proc` that describe keys, addresses or devices of the whole machine. */
const SENSITIVE: ReadonlySet<string> = new Set([
  "acpi",
  "asound",
  "kallsyms",
  "kcore",
  "key-users",
  "keys",
  "latency_stats",
  "sched_debug",
  "scsi",
  "timer_list",
  "timer_stats",
]);

/** Entries of `/proc` that belong to the machine, not to a process. */
export interface KernelFiles {
  /** Mounted read-only: each directory, such as `/proc/sys`, and each file with a write permission. */
  readonly readOnly: readonly string[];
  /** Covered by an empty file or directory. */
  readonly covered: readonly string[];
}

/**
 * The entries of `/proc` that isolated commands must not change or read.
 *
 * File modes do not protect them from a command of root, which is their owner even without capabilities. Bubblewrap mounts a
 * few directories read-only, but not `/proc/sys`, because its mode looks read-only.
 */
export function readKernelFiles(): KernelFiles {
  const readOnly: string[] = [];
  const covered: string[] = [];
  for (const item of entriesOfProc()) {
    const path = join("/proc", item.name);
    const mode = lstatSync(path, { throwIfNoEntry: false })?.mode;
    if (mode === undefined) continue;
    if (SENSITIVE.has(item.name) || (mode & READABLE) === 0) covered.push(path);
    else if (item.isDirectory() || (mode & WRITABLE) !== 0) readOnly.push(path);
  }
  return { readOnly, covered };
}

/** The first of these paths that is not mounted read-only according to a `mountinfo` file; null if all are. */
export function findUnmasked(mountinfo: string, { readOnly, covered }: KernelFiles): string | null {
  const masked = new Map<string, boolean>();
  for (const line of mountinfo.split("\n")) {
    const [, , , , path = "", flags = ""] = line.split(" ");
    // A later line for the same path is mounted over the earlier one.
    masked.set(path, flags.split(",").includes("ro"));
  }
  return [...readOnly, ...covered].find((path) => masked.get(path) !== true) ?? null;
}

function entriesOfProc(): Dirent[] {
  try {
    // Links such as /proc/self and /proc/net point into directories of processes.
    return readdirSync("/proc", { withFileTypes: true }).filter(
      (item) => !PROCESS.test(item.name) && !item.isSymbolicLink(),
    );
  } catch {
    return [];
  }
}
