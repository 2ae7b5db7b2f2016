import { readdir, stat } from "node:fs/promises";
import { join, resolve } from "node:path";
import { SessionError, show } from "../../session/errors.ts";
import type { ForeignFormat } from "./foreign-format.ts";

/** A file that may hold sessions. */
export interface SessionFile {
  readonly path: string;
  readonly size: number;
  readonly mtimeMs: number;
}

/**
 * The session files below a directory, or the path itself if it is a file. Sorted by modification time, oldest first.
 *
 * @throws {SessionError} `INVALID_OPTION` when the path cannot be read.
 */
export async function sessionFiles(format: ForeignFormat | null, path: string, since = 0): Promise<SessionFile[]> {
  const root = resolve(path);
  const found = await look(root);
  if (found === null) throw new SessionError("INVALID_OPTION", `${show(path)} cannot be read; check the path.`);
  if (found.isFile()) return [{ path: root, size: found.size, mtimeMs: found.mtimeMs }];
  const files: SessionFile[] = [];
  for (const entry of await readdir(root, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    if (!entry.isFile() || !(format?.isSessionFile(file) ?? /\.jsonl?$/.test(file))) continue;
    const seen = await look(file);
    if (seen !== null && seen.mtimeMs >= since) files.push({ path: file, size: seen.size, mtimeMs: seen.mtimeMs });
  }
  return files.sort((a, b) => a.mtimeMs - b.mtimeMs);
}

/** Null if the file does not exist, or was deleted meanwhile. */
async function look(path: string) {
  return stat(path).catch(() => null);
}
