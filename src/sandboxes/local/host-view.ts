import { lstatSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, isAbsolute, resolve } from "node:path";
import { isIn } from "./follow-links.ts";
import { type KernelFiles, readKernelFiles } from "./kernel-files.ts";
import { type Link, linkAt, privateIn, ProgramSearch, type Programs, realPath } from "./program-search.ts";

/** System directories with programs. Data, logs, mail, files of other users and mounted disks are elsewhere. */
const SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu"];
/** The only part of `/sys` that is mounted, for the number of processors. */
const PROCESSORS = "/sys/devices/system";
/** How deep to search for private files in these directories. */
const PRIVATE_DEPTHS: Readonly<Record<string, number>> = { "/etc": 8, "/opt": 1 };
/** How many items are searched for private files in each directory that is mounted for a program. */
const PROGRAM_ITEMS_MAX = 3_000;
const KEPT_MS = 60_000;

/** The part of the host's file system that an isolated command sees. */
export interface HostView {
  /** Links at the top of the file system, such as `/bin`, and where they point. */
  readonly links: readonly Link[];
  /** Paths mounted read-only. */
  readonly shown: readonly string[];
  /** Private paths below them, which are hidden. */
  readonly covered: readonly string[];
  /** Home directories; they are replaced by empty ones. */
  readonly homes: readonly string[];
  /** The files in other directories that the programs of `PATH` need. */
  readonly programs: Programs;
  /** Entries of `/proc` that are protected from commands. */
  readonly kernel: KernelFiles;
}

type System = Pick<HostView, "links" | "shown" | "covered" | "kernel">;

const kept = new Map<string, { readonly value: unknown; readonly until: number }>();

/**
 * The view for a command: the system without private files, and the programs of its `PATH`, wherever they are.
 *
 * Links in `writable` paths are not followed: otherwise a command could choose what the next command sees. `hidden` paths are
 * never mounted. Uses synchronous file system calls: a few thousand, cached for a minute.
 */
export function viewOfHost(
  env: Readonly<Record<string, string>>,
  { writable, hidden }: { readonly writable: readonly string[]; readonly hidden: readonly string[] },
): HostView {
  const system = keep("system", readSystem);
  const path = env["PATH"] ?? "";
  const home = env["HOME"] ?? "";
  const [homes, programs] = keep(JSON.stringify([path, home, writable, hidden]), () => {
    const found = homesOf(home, system);
    return [found, findPrograms(path, { system, homes: found, home, writable, hidden })] as const;
  });
  return { ...system, homes, programs };
}

function keep<T>(key: string, make: () => T): T {
  const now = performance.now();
  const known = kept.get(key);
  if (known !== undefined && known.until > now) return known.value as T;
  for (const [each, { until }] of kept) if (until <= now) kept.delete(each);
  const value = make();
  kept.set(key, { value, until: now + KEPT_MS });
  return value;
}

function readSystem(): System {
  const links: Link[] = [];
  const shown: string[] = [];
  for (const path of [...SYSTEM, PROCESSORS]) {
    const target = linkAt(path);
    if (target !== null) links.push({ path, target });
    else if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) shown.push(path);
  }
  const covered = shown.flatMap((path) => privateIn(path, { depth: PRIVATE_DEPTHS[path] ?? 0 }));
  return { links, shown, covered, kernel: readKernelFiles() };
}

/** The home directories of the user and of the command, except those that are or contain a part of the system. */
function homesOf(own: string, { shown }: System): string[] {
  const homes = new Set<string>();
  for (const path of [homedir(), own]) {
    if (!isAbsolute(path)) continue;
    const real = realPath(path);
    const home = real ?? resolve(path);
    if (shown.some((each) => isIn(each, home))) continue;
    // A missing home cannot be created inside of a read-only system directory.
    if (real !== null || !shown.some((each) => isIn(home, each))) homes.add(home);
  }
  // Outer directories first: mounted later, they would cover the inner ones.
  return [...homes].sort((one, other) => one.length - other.length);
}

/** The programs of a `PATH` outside of the system directories, found directly or through links of other programs. */
function findPrograms(
  path: string,
  view: {
    readonly system: System;
    readonly homes: readonly string[];
    readonly home: string;
    readonly writable: readonly string[];
    readonly hidden: readonly string[];
  },
): Programs {
  const { links, shown, covered } = view.system;
  const tops = [...shown, ...links.map((link) => link.path)];
  const inSystem = (realPath: string): boolean =>
    tops.some((each) => isIn(realPath, each)) && ![...covered, ...view.homes].some((each) => isIn(realPath, each));
  const search = new ProgramSearch({
    inSystem,
    apart: [...view.homes, ...view.hidden, ...view.writable],
    closed: [...view.hidden, ...view.writable],
    privateIn: (directory) => privateIn(directory, { left: PROGRAM_ITEMS_MAX, programs: true }),
  });
  search.reach(view.home);
  for (const each of path.split(delimiter)) search.add(each);
  return search.result();
}
