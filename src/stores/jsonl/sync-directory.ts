import { open } from "node:fs/promises";
import { dirname } from "node:path";

/** Makes sure that a file's name survives a power cut, where the system can do that. */
export async function syncDirectoryOf(path: string): Promise<void> {
  const handle = await open(dirname(path), "r").catch(() => null);
  if (handle === null) return;
  try {
    await handle.sync();
  } catch {
    // Some systems cannot sync a directory; there, nothing more can be done.
  } finally {
    await handle.close();
  }
}
