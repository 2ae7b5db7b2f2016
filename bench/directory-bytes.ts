import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";

/** How many bytes the files of a directory hold, those of its directories included. */
export async function directoryBytes(directory: string): Promise<number> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(files.map((file) => fileBytes(join(file.parentPath, file.name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** A file that went away meanwhile, as SQLite's side files may after a close, holds nothing. */
async function fileBytes(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}
