import { realpath } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import { existsSync } from "node:fs";
import { show } from "../../session/errors.ts";
import { SandboxError } from "../../session/sandbox/sandbox.ts";
import { followLinks, isIn } from "./follow-links.ts";
import { pathsHiddenFromSandboxes } from "../../session/sandbox/sandbox-hidden-paths.ts";
import { skeinHome } from "../../tree/home.ts";

/** Decides which paths a sandbox may access: those in its root and in the paths that its spec allows. */
export class Confinement {
  /** The root, with links resolved. */
  readonly root: string;
  /** The other allowed paths, with links resolved. */
  readonly allowed: readonly string[];

  private constructor(root: string, allowed: readonly string[]) {
    this.root = root;
    this.allowed = allowed;
  }

  /** The root must exist; allowed paths need not. */
  static async create(root: string, allowPaths: readonly string[]): Promise<Confinement> {
    return new Confinement(await realpath(root), await Promise.all(allowPaths.map(followLinks)));
  }

  /**
   * Resolves a path and its links. The path need not exist.
   *
   * @throws {SandboxError} `not_permitted` if the result is outside.
   */
  async resolve(path: string): Promise<string> {
    return await this.#check(path, await followLinks(this.#absolute(path)));
  }

  /** Like `resolve`, but does not follow a link at the end of the path. */
  async resolveItem(path: string): Promise<string> {
    const absolute = this.#absolute(path);
    return await this.#check(path, join(await followLinks(dirname(absolute)), basename(absolute)));
  }

  /** Hidden paths in the root and the allowed paths, with links resolved. They need not exist. */
  async hidden(): Promise<readonly string[]> {
    const inside = (realPath: string): boolean =>
      rootsOf(this).some((each) => realPath !== each && isIn(realPath, each));
    return (await hiddenPaths(this.root)).filter(inside);
  }

  /** Skein's home, stores and other hidden paths, wherever they are. */
  async ownPaths(): Promise<readonly string[]> {
    return await hiddenPaths(this.root);
  }

  /** Whether a path contains the root, an allowed path or a hidden path, so that it must not be removed or moved. */
  async containsProtected(realPath: string): Promise<boolean> {
    return [...rootsOf(this), ...(await this.hidden())].some((each) => isIn(each, realPath));
  }

  /** The name of a real path for the caller: relative to the root if it is inside, else absolute. */
  nameOf(path: string, realPath: string): string {
    for (const each of [this.#absolute(path), realPath]) {
      if (isIn(each, this.root)) return each.slice(this.root.length).split(sep).filter(Boolean).join("/");
    }
    return realPath;
  }

  async #check(path: string, realPath: string): Promise<string> {
    if (!rootsOf(this).some((each) => isIn(realPath, each))) throw outside(path);
    if ((await this.hidden()).some((each) => isIn(realPath, each))) {
      throw new SandboxError("not_permitted", `The path ${show(path)} is Skein's own, and hidden from tools.`);
    }
    return realPath;
  }

  #absolute(path: string): string {
    if (typeof path !== "string" || path.includes("\0")) {
      throw new SandboxError("not_permitted", `The path ${show(path)} cannot name a file.`);
    }
    return resolve(this.root, path);
  }
}

function rootsOf({ root, allowed }: Confinement): readonly string[] {
  return [root, ...allowed];
}

function outside(path: string): SandboxError {
  return new SandboxError(
    "not_permitted",
    `The path ${show(path)} is outside of the sandbox; use one in its root, or name it in allowPaths.`,
  );
}

/** Suffixes of the files that a database keeps beside its main file. */
const SIDE_FILES = ["-wal", "-shm", "-journal"];

/** Cache of resolved paths. A store does not move while it is open. */
const real = new Map<string, Promise<string>>();

/** The paths hidden from tools: Skein's home, a project's own `.skein`, and paths registered by stores and others. */
async function hiddenPaths(root: string): Promise<readonly string[]> {
  const homes = await Promise.all([skeinHome(), join(root, ".skein")].map(withoutLinks));
  return [...homes, ...(await storePaths())];
}

/** The paths registered by stores and others, with the side files of databases. */
export async function storePaths(): Promise<readonly string[]> {
  const named = await Promise.all(pathsHiddenFromSandboxes().map(withoutLinks));
  return named.flatMap((path) => [path, ...SIDE_FILES.map((ending) => path + ending)]);
}

function withoutLinks(path: string): Promise<string> {
  const known = real.get(path);
  if (known !== undefined) return known;
  const following = followLinks(path);
  // A missing path is not cached: it may become a link.
  if (existsSync(path)) real.set(path, following);
  following.catch(() => real.delete(path));
  return following;
}
