import { basename, dirname } from "node:path";
import { realpath } from "node:fs/promises";
import { removeTree } from "../src/sandboxes/local/file-tree.ts";
import { pinIfExists } from "../src/sandboxes/local/pinned-directory.ts";

const ATTEMPTS_MAX = 20;

/** Removes a directory with all in it, also where its owner may not write to a directory in it, which `rm` leaves there. */
export async function removeAll(path: string): Promise<void> {
  await using parent = await pinIfExists(await realpath(dirname(path)));
  if (parent === null) return;
  for (let attempt = 1; ; attempt++) {
    try {
      await removeTree(parent, basename(path));
      return;
    } catch (error) {
      // A process that is being ended may have written meanwhile.
      if ((error as NodeJS.ErrnoException).code !== "ENOTEMPTY" || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}
