import { readlink, realpath } from "node:fs/promises";
import { basename, dirname, join, resolve, sep } from "node:path";
import { show } from "../../session/errors.ts";
import { SandboxError } from "../../session/sandbox/sandbox.ts";
import { isMissing } from "./file-failure.ts";

const LINKS_MAX = 40;

/** Resolves all links in a path, even if the path or the target of a link does not exist. */
export async function followLinks(path: string): Promise<string> {
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

/** Whether a path is a folder or inside of it. */
export function isIn(realPath: string, folder: string): boolean {
  return realPath === folder || realPath.startsWith(folder.endsWith(sep) ? folder : folder + sep);
}
