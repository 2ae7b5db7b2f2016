import { lstatSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, isAbsolute, resolve } from "node:path";
import { isIn } from "./follow-links.ts";
import { type KernelFiles, lookAtKernelFiles } from "./kernel-files.ts";
import { type Link, linkAt, privateIn, ProgramSearch, type Programs, realPath } from "./program-search.ts";

/** What programs are made of. Data, logs, mail, other people's files and mounted disks are elsewhere. */
const SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu"];
/** What is shown of `/sys`: how many processors there are, and no more. */
const PROCESSORS = "/sys/devices/system";
/** How deep to look for what only some accounts may read. */
const PRIVATE_DEPTHS: Readonly<Record<string, number>> = { "/etc": 8, "/opt": 1 };
/** How many items to look at for private files in each directory that is shown for the sake of programs. */
const PROGRAM_ITEMS_MAX = 3_000;
const KEPT_MS = 60_000;

/** What an isolated command sees of the machine besides its own files. */
export interface HostView {
  /** Links at the top of the file system, such as `/bin`, and where they point. */
  readonly links: readonly Link[];
  /** What is shown for reading. */
  readonly shown: readonly string[];
  /** What is covered in there, as only some accounts may read it. */
  readonly covered: readonly string[];
  /** Home directories, which are empty. */
  readonly homes: readonly string[];
  /** What the programs of `PATH` need of other directories, and what is private in there. */
  readonly programs: Programs;
  /** What is kept from commands in `/proc`. */
  readonly kernel: KernelFiles;
}

type System = Pick<HostView, "links" | "shown" | "covered" | "kernel">;

const kept = new Map<string, { readonly value: unknown; readonly until: number }>();

/**
 * The view for a command: the system without what is private, and the programs of its `PATH` wherever they are.
 *
 * `writable` is what the command may change: links in there are not followed, or the command could choose what the next
 * one is shown. What is `hidden` is never shown. The file system is asked without awaits: some thousand quick questions,
 * once a minute.
 */
export function viewOfHost(
  env: Readonly<Record<string, string>>,
  { writable, hidden }: { readonly writable: readonly string[]; readonly hidden: readonly string[] },
): HostView {
  const system = keep("system", lookAtSystem);
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

function lookAtSystem(): System {
  const links: Link[] = [];
  const shown: string[] = [];
  for (const path of [...SYSTEM, PROCESSORS]) {
    const target = linkAt(path);
    if (target !== null) links.push({ path, target });
    else if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) shown.push(path);
  }
  const covered = shown.flatMap((path) => privateIn(path, { depth: PRIVATE_DEPTHS[path] ?? 0 }));
  return { links, shown, covered, kernel: lookAtKernelFiles() };
}

/** The home directories of the user and of the command, but for those that are, or hold, a part of the system. */
function homesOf(own: string, { shown }: System): string[] {
  const homes = new Set<string>();
  for (const path of [homedir(), own]) {
    if (!isAbsolute(path)) continue;
    const real = realPath(path);
    const home = real ?? resolve(path);
    if (shown.some((each) => isIn(each, home))) continue;
    // Nothing can be made where the system is shown.
    if (real !== null || !shown.some((each) => isIn(home, each))) homes.add(home);
  }
  // The outer one first: it would cover the one in it.
  return [...homes].sort((one, other) => one.length - other.length);
}

/** The programs of a `PATH` that are outside of the system, found in it or by links among its programs. */
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
