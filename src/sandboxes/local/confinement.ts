import { readlink, realpath } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import { show } from "../../session/errors.ts";
import { SandboxError } from "../../session/sandbox.ts";
import { isMissing } from "./file-failure.ts";

const LINKS_MAX = 40;

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
   * The place that a path means, without links in it; there need not be anything.
   *
   * @throws {SandboxError} `not_permitted` when that is outside.
   */
  async resolve(path: string): Promise<string> {
    const place = await followLinks(this.#absolute(path));
    if (!this.contains(place)) throw outside(path);
    return place;
  }

  /** As `resolve`, but a link at the end of the path is what is meant, not what it points to. */
  async resolveItem(path: string): Promise<string> {
    const absolute = this.#absolute(path);
    const place = join(await followLinks(dirname(absolute)), basename(absolute));
    if (!this.contains(place)) throw outside(path);
    return place;
  }

  /** Whether a path without links in it lies inside. */
  contains(place: string): boolean {
    return isIn(place, this.root) || this.allowed.some((each) => isIn(place, each));
  }

  /** Whether the root or an allowed path would go with this one. */
  carries(place: string): boolean {
    return isIn(this.root, place) || this.allowed.some((each) => isIn(each, place));
  }

  /** How a place is named to the caller: relative to the root where it is in there, else absolute. */
  nameOf(path: string, place: string): string {
    for (const each of [this.#absolute(path), place]) {
      if (isIn(each, this.root)) return each.slice(this.root.length).split(sep).filter(Boolean).join("/");
    }
    return place;
  }

  #absolute(path: string): string {
    if (typeof path !== "string" || path.includes("\0")) {
      throw new SandboxError("not_permitted", `The path ${show(path)} cannot name a file.`);
    }
    return resolve(this.root, path);
  }
}

/** A path without the links in it, also where its end does not exist, or a link in it points to nothing. */
async function followLinks(path: string): Promise<string> {
  let pending = path;
  for (let links = 0; links < LINKS_MAX; links++) {
    const missing: string[] = [];
    let next: string | null = null;
    for (let at = pending; next === null; at = dirname(at)) {
      try {
        return join(await realpath(at), ...missing);
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
      const target = await readlink(at).catch(() => null);
      if (target !== null) next = resolve(await realpath(dirname(at)), target, ...missing);
      missing.unshift(basename(at));
    }
    pending = next;
  }
  throw new SandboxError("not_permitted", `The path ${show(path)} goes through more than ${LINKS_MAX} links.`);
}

function isIn(place: string, folder: string): boolean {
  return place === folder || place.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}

function outside(path: string): SandboxError {
  return new SandboxError(
    "not_permitted",
    `The path ${show(path)} is outside of the sandbox; use one in its root, or name it in allowPaths.`,
  );
}
