import {
  closeSync,
  type Dirent,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
} from "node:fs";
import { basename, dirname, isAbsolute, join, resolve, sep } from "node:path";
import { isIn } from "./follow-links.ts";

/** Names of directories with programs. */
const PROGRAM_FOLDERS: ReadonlySet<string> = new Set(["bin", "sbin", "shims", "condabin"]);
/** Names of library directories beside `bin`. */
const LIBRARIES = ["lib", "lib32", "lib64", "libexec", "include"];
/** Kinds of installations: the first name identifies the kind, the others are needed beside `bin`. */
const INSTALLATIONS: readonly (readonly [marker: string, ...needed: string[]])[] = [
  // A Python environment, Java, Go, Conda.
  ["pyvenv.cfg", "pyvenv.cfg"],
  ["lib/jvm.cfg", "conf"],
  ["pkg/tool", "pkg", "src", "VERSION", "go.env"],
  ["conda-meta", "conda-meta", "share", "ssl"],
  // Version managers: pyenv, rbenv and nodenv, asdf and mise.
  ["shims", "bin", "shims", "versions", "version", "plugins", "installs"],
];
/** Rust keeps its toolchains in another directory. */
const RUST = [".cargo", "../.rustup/toolchains", "../.rustup/settings.toml"] as const;
const MODULES = `${sep}node_modules${sep}`;
const DIRECTORIES_MAX = 200;
const FILES_MAX = 500;
const LINKS_MAX = 40;
const SHEBANG_BYTES = 256;
const SHEBANG = /^#!\s*(\/[^\s]+)/;
const EXECUTABLE = 0o111;
const PUBLIC_FILE = 0o004;
const PUBLIC_DIRECTORY = 0o005;

/** A symbolic link and its target. */
export interface Link {
  readonly path: string;
  readonly target: string;
}

/** The files outside of the system directories that programs need. */
export interface Programs {
  /** Directories and files to mount, with links resolved. */
  readonly shown: readonly string[];
  /** Private files and directories in them. */
  readonly covered: readonly string[];
  /** Links outside of them that point there. */
  readonly links: readonly Link[];
}

/** The limits of a search. */
interface Bounds {
  /** Whether a path is in a system directory, which is mounted anyway. */
  readonly inSystem: (realPath: string) => boolean;
  /** Protected paths: no directory that contains one of them is mounted. */
  readonly apart: readonly string[];
  /** Paths that are not searched. */
  readonly closed: readonly string[];
  readonly privateIn: (directory: string) => string[];
}

/**
 * Finds the files that the programs of directories need, and no others:
 *
 * - the directory itself; if it is private, or contains a home or a workspace, only the executable files in it;
 * - the targets of links and of script interpreters (`#!`) in it: an executable file, with the program directory or the
 *   `node_modules` that contains it. Other targets are ignored;
 * - known library directories beside a program directory. Other items beside it may be credentials.
 *
 * In all of these, files and directories that are not world-readable are covered, except programs.
 */
export class ProgramSearch {
  readonly #bounds: Bounds;
  readonly #directories = new Set<string>();
  readonly #shown = new Set<string>();
  readonly #links = new Map<string, string>();

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /** Adds a directory of `PATH`. Relative ones are ignored: they are in the workspace, which is mounted anyway. */
  add(directory: string): void {
    if (!isAbsolute(directory)) return;
    const real = this.reach(resolve(directory));
    if (real !== null && isDirectory(real)) this.#directories.add(real);
  }

  /** Resolves a path and records the links on the way; null if it is closed or does not exist. */
  reach(path: string): string | null {
    const walked = isAbsolute(path) ? walk(path) : null;
    if (walked === null) return null;
    const through = [walked.realPath, ...walked.links.map((link) => link.path)];
    if (through.some((each) => this.#bounds.closed.some((closed) => isIn(each, closed)))) return null;
    for (const { path: at, target } of walked.links) this.#links.set(at, target);
    return walked.realPath;
  }

  result(): Programs {
    // Items that are added to the set during the iteration are visited, too.
    for (const directory of this.#directories) this.#scan(directory);
    const all = [...this.#shown];
    const shown = all.filter((one) => !all.some((each) => each !== one && isIn(one, each)));
    const links = [...this.#links]
      .map(([path, target]) => ({ path, target }))
      .filter(({ path }) => !this.#bounds.inSystem(path) && !shown.some((each) => isIn(path, each)));
    const covered = shown.filter(isDirectory).flatMap((each) => this.#bounds.privateIn(each));
    return { shown, covered, links };
  }

  #scan(directory: string): void {
    const inSystem = this.#bounds.inSystem(directory);
    const isWhole = !inSystem && this.#showWhole(directory);
    if (!inSystem && PROGRAM_FOLDERS.has(basename(directory))) this.#showBeside(dirname(directory));
    for (const item of itemsOf(directory)) {
      const path = join(directory, item.name);
      if (item.isSymbolicLink()) this.#follow(path);
      else if (!inSystem && item.isFile() && isProgram(path)) {
        if (!isWhole) this.#showFile(path);
        this.#followScript(path);
      }
    }
  }

  /** Mounts a file or a whole directory; false if it is private or contains a protected path. */
  #showWhole(realPath: string): boolean {
    if (this.#bounds.apart.some((each) => isIn(each, realPath)) || !isPublic(realPath)) return false;
    this.#shown.add(realPath);
    return true;
  }

  #showFile(realPath: string): void {
    if (this.#shown.size < FILES_MAX) this.#shown.add(realPath);
  }

  /** Mounts the libraries for the programs of a `bin` in this directory. Links to other directories are not followed. */
  #showBeside(above: string): void {
    const names = INSTALLATIONS.flatMap(([marker, ...needed]) => (exists(join(above, marker)) ? needed : []));
    for (const name of [...LIBRARIES, ...names, ...(basename(above) === RUST[0] ? RUST.slice(1) : [])]) {
      const path = join(above, name);
      if (realPath(path) === path && !this.#bounds.inSystem(path)) this.#showWhole(path);
    }
  }

  #follow(link: string): void {
    const walked = walk(link);
    if (walked === null || this.#bounds.inSystem(walked.realPath) || !isProgram(walked.realPath)) return;
    const real = this.reach(link);
    if (real === null) return;
    const modules = real.indexOf(MODULES);
    if (modules !== -1 && this.#showWhole(real.slice(0, modules + MODULES.length - 1))) return;
    if (PROGRAM_FOLDERS.has(basename(dirname(real)))) this.#addFound(dirname(real));
    else {
      this.#showFile(real);
      this.#followScript(real);
    }
  }

  /** Adds the interpreter of a script, which is often in a virtual environment. */
  #followScript(script: string): void {
    const program = SHEBANG.exec(beginningOf(script))?.[1];
    if (program === undefined || this.#bounds.inSystem(program) || !PROGRAM_FOLDERS.has(basename(dirname(program))))
      return;
    const directory = isProgram(walk(program)?.realPath ?? "") ? this.reach(dirname(program)) : null;
    if (directory !== null) this.#addFound(directory);
  }

  #addFound(directory: string): void {
    if (this.#directories.size < DIRECTORIES_MAX) this.#directories.add(directory);
  }
}

/**
 * The items of a directory that are not world-readable, upper levels first, because credentials are there more often than deep
 * in libraries. With `programs`, executable files are omitted: in a home they are often private to their owner, but hold no
 * secrets. `left` limits the number of items to search, `depth` the number of levels.
 */
export function privateIn(
  directory: string,
  {
    depth = Number.POSITIVE_INFINITY,
    left = Number.POSITIVE_INFINITY,
    programs = false,
  }: { readonly depth?: number; readonly left?: number; readonly programs?: boolean },
): string[] {
  const found: string[] = [];
  let budget = left;
  let level = [directory];
  for (let at = 0; at < depth && level.length > 0 && budget > 0; at++) {
    const below: string[] = [];
    for (const parent of level) {
      for (const item of itemsOf(parent)) {
        if ((!item.isFile() && !item.isDirectory()) || budget-- <= 0) continue;
        const path = join(parent, item.name);
        if (isPublic(path)) {
          if (item.isDirectory()) below.push(path);
        } else if (!(programs && item.isFile() && isProgram(path))) found.push(path);
      }
    }
    level = below;
  }
  return found;
}

/** The target of a link; null for anything else. */
export function linkAt(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

/** The path with links resolved; null if it does not exist. */
export function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

/** Resolves a path link by link; null if the end does not exist. */
function walk(path: string): { readonly realPath: string; readonly links: readonly Link[] } | null {
  const links: Link[] = [];
  const pending = path.split(sep).filter(Boolean);
  let at: string = sep;
  for (let part = pending.shift(); part !== undefined; part = pending.shift()) {
    const next = join(at, part);
    const target = linkAt(next);
    if (target === null) {
      at = next;
      continue;
    }
    if (links.length === LINKS_MAX) return null;
    links.push({ path: next, target });
    if (isAbsolute(target)) at = sep;
    pending.unshift(...target.split(sep).filter(Boolean));
  }
  return exists(at) ? { realPath: at, links } : null;
}

function isProgram(path: string): boolean {
  const stats = statsOf(path);
  return stats?.isFile() === true && (stats.mode & EXECUTABLE) !== 0;
}

function isPublic(path: string): boolean {
  const stats = statsOf(path);
  if (stats === undefined) return false;
  const needed = stats.isDirectory() ? PUBLIC_DIRECTORY : PUBLIC_FILE;
  return (stats.mode & needed) === needed;
}

function isDirectory(path: string): boolean {
  return statsOf(path)?.isDirectory() === true;
}

function exists(path: string): boolean {
  return statsOf(path) !== undefined;
}

function statsOf(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function itemsOf(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}

function beginningOf(file: string): string {
  try {
    const descriptor = openSync(file, "r");
    try {
      const bytes = Buffer.alloc(SHEBANG_BYTES);
      return bytes.toString("latin1", 0, readSync(descriptor, bytes, 0, SHEBANG_BYTES, 0));
    } finally {
      closeSync(descriptor);
    }
  } catch {
    return "";
  }
}
