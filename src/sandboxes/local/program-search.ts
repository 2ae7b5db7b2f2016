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

/** Names that directories of programs have. */
const PROGRAM_FOLDERS: ReadonlySet<string> = new Set(["bin", "sbin", "shims", "condabin"]);
/** What programs load, by the names that such directories have beside `bin`. */
const LIBRARIES = ["lib", "lib32", "lib64", "libexec", "include"];
/** What else is needed beside `bin` where the first name shows what kind of installation it is. */
const INSTALLATIONS: readonly (readonly [marker: string, ...needed: string[]])[] = [
  // A Python environment, Java, Go, Conda.
  ["pyvenv.cfg", "pyvenv.cfg"],
  ["lib/jvm.cfg", "conf"],
  ["pkg/tool", "pkg", "src", "VERSION", "go.env"],
  ["conda-meta", "conda-meta", "share", "ssl"],
  // Programs that choose a version of others: pyenv, rbenv and nodenv, asdf and mise.
  ["shims", "bin", "shims", "versions", "version", "plugins", "installs"],
];
/** Rust keeps what it runs in another directory. */
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

/** A symbolic link, with what it holds. */
export interface Link {
  readonly path: string;
  readonly target: string;
}

/** What programs need outside of the system. */
export interface Programs {
  /** Directories and files to show, by paths without links. */
  readonly shown: readonly string[];
  /** Private files and directories in them. */
  readonly covered: readonly string[];
  /** Links outside of them that lead there. */
  readonly links: readonly Link[];
}

/** What a search may look at. */
interface Bounds {
  /** Whether a path is shown anyway. */
  readonly inSystem: (realPath: string) => boolean;
  /** What no directory is shown for that holds it. */
  readonly apart: readonly string[];
  /** What is not looked into. */
  readonly closed: readonly string[];
  readonly privateIn: (directory: string) => string[];
}

/**
 * Finds what the programs of directories need, and no more:
 *
 * - the directory itself. Where it is private, or holds a home or a workspace, only the executable files in it;
 * - what links in it, and the first lines of scripts in it, lead to: an executable file, with the directory of programs,
 *   or the `node_modules`, that it is in. A link to anything else shows nothing;
 * - the libraries beside a directory of programs, by their names. What else is beside it may well be credentials.
 *
 * Of all that, files and directories are covered that not every account may read, but for programs.
 */
export class ProgramSearch {
  readonly #bounds: Bounds;
  readonly #directories = new Set<string>();
  readonly #shown = new Set<string>();
  readonly #links = new Map<string, string>();

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  /** Adds a directory of `PATH`. A relative one is in the workspace, and needs nothing. */
  add(directory: string): void {
    if (!isAbsolute(directory)) return;
    const real = this.reach(resolve(directory));
    if (real !== null && isDirectory(real)) this.#directories.add(real);
  }

  /** Where a path leads, through links that are made to be there; null when it is closed, or nothing is there. */
  reach(path: string): string | null {
    const walked = isAbsolute(path) ? walk(path) : null;
    if (walked === null) return null;
    const through = [walked.realPath, ...walked.links.map((link) => link.path)];
    if (through.some((each) => this.#bounds.closed.some((closed) => isIn(each, closed)))) return null;
    for (const { path: at, target } of walked.links) this.#links.set(at, target);
    return walked.realPath;
  }

  result(): Programs {
    // A set that grows while it is gone through yields what was added, too.
    for (const directory of this.#directories) this.#look(directory);
    const all = [...this.#shown];
    const shown = all.filter((one) => !all.some((each) => each !== one && isIn(one, each)));
    const links = [...this.#links]
      .map(([path, target]) => ({ path, target }))
      .filter(({ path }) => !this.#bounds.inSystem(path) && !shown.some((each) => isIn(path, each)));
    const covered = shown.filter(isDirectory).flatMap((each) => this.#bounds.privateIn(each));
    return { shown, covered, links };
  }

  #look(directory: string): void {
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

  /** Shows a file or a directory with all in it; false where it is private, or holds what is apart. */
  #showWhole(realPath: string): boolean {
    if (this.#bounds.apart.some((each) => isIn(each, realPath)) || !isPublic(realPath)) return false;
    this.#shown.add(realPath);
    return true;
  }

  #showFile(realPath: string): void {
    if (this.#shown.size < FILES_MAX) this.#shown.add(realPath);
  }

  /** Shows what the programs of a `bin` in this directory load. A link to somewhere else is not followed. */
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

  /** The program that a script is for, which is often one of an environment of its own. */
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
 * What not every account may read in a directory, the upper levels first: credentials lie there more often than deep among
 * libraries. With `programs`, executable files are left out: in a home they are often for their owner alone, and hold no
 * secrets. `left` says how many items may be looked at, and `depth` how many levels.
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

/** The text of a link; null for anything else. */
export function linkAt(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

/** A path without links; null when nothing is there. */
export function realPath(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

/** Follows a path link by link; null when nothing is at its end. */
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
