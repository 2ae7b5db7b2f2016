import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathsHiddenFromSandboxes } from "../../session/sandbox/sandbox-hidden-paths.ts";
import { skeinHome } from "../../tree/home.ts";
import { followLinks } from "./follow-links.ts";

/** What a database keeps beside its file. */
const SIDE_FILES = ["-wal", "-shm", "-journal"];

/** Where the paths that were asked for are without links. A store does not move while it is open. */
const real = new Map<string, Promise<string>>();

/** What no tool is shown: Skein's home, also one that a project has in its directory, and what stores and others hid. */
export async function hiddenPaths(root: string): Promise<readonly string[]> {
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
