import { type Dirent, lstatSync, readdirSync, readlinkSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { isIn } from "./follow-links.ts";

/** What programs are made of. Data, logs, mail, other people's files and mounted disks are elsewhere. */
const SYSTEM = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu"];
/** What is shown of `/sys`: how many processors there are, and no more. */
const PROCESSORS = "/sys/devices/system";
/** How deep to look for what only some accounts may read. */
const PRIVATE_DEPTHS: Readonly<Record<string, number>> = { "/etc": 8, "/opt": 1 };
/** Directories of programs whose neighbours the programs need: libraries, versions, modules. */
const PROGRAM_FOLDERS: ReadonlySet<string> = new Set(["bin", "sbin", "shims", "condabin"]);
/** Where the neighbours hold more than programs, so that only these are shown with the directory of the programs. */
const NEIGHBOURS: Readonly<Record<string, readonly string[]>> = { ".local": ["lib"], ".cargo": ["../.rustup"] };
const DIRECTORIES_MAX = 200;
const KEPT_MS = 60_000;

/** A directory of the host, and where it is shown. */
export interface ShownDirectory {
  readonly source: string;
  readonly path: string;
}

/** What an isolated command sees of the machine besides its own files. */
export interface HostView {
  /** Links at the top of the file system, such as `/bin`, and where they point. */
  readonly links: readonly { readonly path: string; readonly target: string }[];
  /** What is shown for reading. */
  readonly shown: readonly string[];
  /** What is covered in there, as only some accounts may read it. */
  readonly covered: readonly string[];
  /** Home directories, which are empty. */
  readonly homes: readonly string[];
  /** What programs need of other directories, shown in what is empty. */
  readonly programs: readonly ShownDirectory[];
}

type System = Pick<HostView, "links" | "shown" | "covered">;

const kept = new Map<string, { readonly value: unknown; readonly until: number }>();

/**
 * The view for a command: the system without what is private, and the programs of its `PATH` wherever they are.
 *
 * What is `apart` is never shown for the sake of a program that lies beside it. The file system is asked without awaits:
 * some thousand quick questions, once a minute.
 */
export function viewOfHost(env: Readonly<Record<string, string>>, apart: readonly string[]): HostView {
  const system = keep("system", lookAtSystem);
  const homes = homesOf(env, system);
  const path = env["PATH"] ?? "";
  const outside = keep(JSON.stringify([path, homes]), () => findPrograms(path, system, homes));
  const programs = new Map<string, string>();
  for (const { source, path: shown } of outside) {
    const [first, ...others] = withNeighbours(source, [...apart, ...homes]);
    for (const each of [first, ...others]) programs.set(each, each);
    if (shown === source) continue;
    // Through a link above the directory its neighbours are to be found, too.
    const whole = first !== source && withNeighbours(shown, [...apart, ...homes])[0] === dirname(shown);
    programs.set(whole ? dirname(shown) : shown, whole ? first : source);
  }
  const paths = [...programs.keys()].filter(
    (one) => ![...programs.keys()].some((each) => each !== one && isIn(one, each)),
  );
  return { ...system, homes, programs: paths.map((each) => ({ path: each, source: programs.get(each) as string })) };
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
  const links: { readonly path: string; readonly target: string }[] = [];
  const shown: string[] = [];
  for (const path of [...SYSTEM, PROCESSORS]) {
    const target = linkAt(path);
    if (target !== null) links.push({ path, target });
    else if (lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) shown.push(path);
  }
  const covered = shown.flatMap((path) => privateIn(path, PRIVATE_DEPTHS[path] ?? 0));
  return { links, shown, covered };
}

/** What others than owner and group may not read. */
function privateIn(directory: string, depth: number): string[] {
  if (depth === 0) return [];
  return itemsOf(directory).flatMap((item) => {
    if (!item.isFile() && !item.isDirectory()) return [];
    const path = join(directory, item.name);
    const open = item.isFile() ? 0o004 : 0o005;
    const mode = lstatSync(path, { throwIfNoEntry: false })?.mode ?? open;
    if ((mode & open) !== open) return [path];
    return item.isDirectory() ? privateIn(path, depth - 1) : [];
  });
}

/** The home directories of the user and of the command, but for those that are, or hold, a part of the system. */
function homesOf(env: Readonly<Record<string, string>>, { shown }: System): string[] {
  const homes = new Set<string>();
  for (const path of [homedir(), env["HOME"] ?? ""]) {
    if (!isAbsolute(path)) continue;
    const real = realPath(path);
    const home = real ?? resolve(path);
    if (shown.some((each) => isIn(each, home))) continue;
    // Nothing can be made where the system is shown.
    if (real !== null || !shown.some((each) => isIn(home, each))) homes.add(home);
  }
  return [...homes];
}

/** The directories outside of the system that hold the programs of a `PATH`, or what links among them lead to. */
function findPrograms(path: string, { links, shown, covered }: System, homes: readonly string[]): ShownDirectory[] {
  const tops = [...shown, ...links.map((link) => link.path)];
  const inSystem = (realPath: string): boolean =>
    tops.some((each) => isIn(realPath, each)) && ![...covered, ...homes].some((each) => isIn(realPath, each));
  const queue = new Set(
    path
      .split(delimiter)
      .filter(isAbsolute)
      .map((each) => resolve(each)),
  );
  const found: ShownDirectory[] = [];
  // A set that grows while it is gone through yields what was added, too.
  for (const directory of queue) {
    const source = realPath(directory);
    if (source === null) continue;
    if (!inSystem(directory)) found.push({ source, path: directory });
    else if (!inSystem(source)) found.push({ source, path: source });
    for (const item of itemsOf(source)) {
      const target = item.isSymbolicLink() ? linkAt(join(source, item.name)) : null;
      const next = target === null ? directory : dirname(resolve(source, target));
      if (!inSystem(next) && queue.size < DIRECTORIES_MAX) queue.add(next);
    }
  }
  return found;
}

/** A directory of programs, or the one above it, where that holds nothing but what belongs to them. */
function withNeighbours(directory: string, apart: readonly string[]): [string, ...string[]] {
  const above = dirname(directory);
  const neighbours = NEIGHBOURS[basename(above)];
  if (neighbours !== undefined) return [directory, ...neighbours.map((each) => join(above, each))];
  const personal = ["/", "/home"].includes(dirname(above)) || apart.some((each) => isIn(each, above));
  return PROGRAM_FOLDERS.has(basename(directory)) && !personal ? [above] : [directory];
}

function itemsOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}

function linkAt(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}
