import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** The total size of the files in a directory and its subdirectories. */
export async function directoryBytes(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(files.map((file) => fileBytes(join(file.parentPath, file.name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** A file that was deleted meanwhile, such as a side file of SQLite after a close, counts as 0 bytes. */
async function fileBytes(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}
