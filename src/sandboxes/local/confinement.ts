import { realpath } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import { existsSync } from "node:fs";
import { show } from "../../session/errors.ts";
import { SandboxError } from "../../session/sandbox/sandbox.ts";
import { followLinks, isIn } from "./follow-links.ts";
import { pathsHiddenFromSandboxes } from "../../session/sandbox/sandbox-hidden-paths.ts";
import { skeinHome } from "../../tree/home.ts";

/** Decides which paths a sandbox may touch: those in its root and in the paths that its spec allows beside it. */
export class Confinement {
  /** The root, without links in its path. */
  readonly root: string;
  /** What is allowed beside the root, without links in the paths. */
  readonly allowed: readonly string[];

  private constructor(root: string, allowed: readonly string[]) {
    this.root = root;
    this.allowed = allowed;
  }

  /** For a root that exists. The allowed paths need not. */
  static async create(root: string, allowPaths: readonly string[]): Promise<Confinement> {
    return new Confinement(await realpath(root), await Promise.all(allowPaths.map(followLinks)));
  }

  /**
   * The real path that a path means, without links in it; there need not be anything.
   *
   * @throws {SandboxError} `not_permitted` when that is outside.
   */
  async resolve(path: string): Promise<string> {
    return await this.#check(path, await followLinks(this.#absolute(path)));
  }

  /** As `resolve`, but a link at the end of the path is what is meant, not what it points to. */
  async resolveItem(path: string): Promise<string> {
    const absolute = this.#absolute(path);
    return await this.#check(path, join(await followLinks(dirname(absolute)), basename(absolute)));
  }

  /** What is not to be found among the files, without links in the paths; there need not be anything. */
  async hidden(): Promise<readonly string[]> {
    const inside = (realPath: string): boolean =>
      rootsOf(this).some((each) => realPath !== each && isIn(realPath, each));
    return (await hiddenPaths(this.root)).filter(inside);
  }

  /** Skein's home, stores and what else was hidden, wherever it is. */
  async ownPaths(): Promise<readonly string[]> {
    return await hiddenPaths(this.root);
  }

  /** Whether the root, an allowed path or something hidden would go with this one. */
  async carries(realPath: string): Promise<boolean> {
    return [...rootsOf(this), ...(await this.hidden())].some((each) => isIn(each, realPath));
  }

  /** How a real path is named to the caller: relative to the root where it is in there, else absolute. */
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

/** What a database keeps beside its file. */
const SIDE_FILES = ["-wal", "-shm", "-journal"];

/** Where the paths that were asked for are without links. A store does not move while it is open. */
const real = new Map<string, Promise<string>>();

/** What no tool is shown: Skein's home, also one that a project has in its directory, and what stores and others hid. */
async function hiddenPaths(root: string): Promise<readonly string[]> {
  const homes = await Promise.all([skeinHome(), join(root, ".skein")].map(withoutLinks));
  return [...homes, ...(await storePaths())];
}

/** What stores and others hid, with what databases keep beside their files. */
export async function storePaths(): Promise<readonly string[]> {
  const named = await Promise.all(pathsHiddenFromSandboxes().map(withoutLinks));
  return named.flatMap((path) => [path, ...SIDE_FILES.map((ending) => path + ending)]);
}

function withoutLinks(path: string): Promise<string> {
  const known = real.get(path);
  if (known !== undefined) return known;
  const following = followLinks(path);
  // A directory that is not there yet may become a link.
  if (existsSync(path)) real.set(path, following);
  following.catch(() => real.delete(path));
  return following;
}
