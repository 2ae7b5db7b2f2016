import { readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { makePrivateDirectory, writePrivateFile } from "../../internal/private-file.ts";
import { digest } from "./foreign-id.ts";
import { isFields } from "./foreign-values.ts";

/** Size and modification time of a file at its import, and the ids of its sessions. */
export interface CachedFile {
  readonly size: number;
  readonly mtimeMs: number;
  readonly sessions: readonly string[];
}

/**
 * A cache of imported files: the next import reads only files whose size or modification time changed. It may be deleted at
 * any time: then all files are read again, and no entry is added twice.
 */
export class ImportCache {
  readonly #path: string;
  readonly #files: Map<string, CachedFile>;

  private constructor(path: string, files: Map<string, CachedFile>) {
    this.#path = path;
    this.#files = files;
  }

  /** Reads the cache from a file; empty if the file is missing or damaged. */
  static async open(path: string): Promise<ImportCache> {
    const files = new Map<string, CachedFile>();
    try {
      const value: unknown = JSON.parse(await readFile(path, "utf8"));
      for (const [file, seen] of Object.entries(isFields(value) ? value : {}))
        if (isCachedFile(seen)) files.set(file, seen);
    } catch {
      // Missing or damaged: all files are read again.
    }
    return new ImportCache(path, files);
  }

  /** The sessions of a file that has not changed since its import; null if it must be read. */
  sessionsOf(file: string, size: number, mtimeMs: number): readonly string[] | null {
    const seen = this.#files.get(file);
    return seen !== undefined && seen.size === size && seen.mtimeMs === mtimeMs ? seen.sessions : null;
  }

  set(file: string, seen: CachedFile): void {
    this.#files.set(file, seen);
  }

  async save(): Promise<void> {
    await makePrivateDirectory(dirname(this.#path));
    const temporary = `${this.#path}.${process.pid}.tmp`;
    await writePrivateFile(temporary, JSON.stringify(Object.fromEntries(this.#files)));
    await rename(temporary, this.#path);
  }
}

/** The file name of the cache for one user and one store. */
export function importCacheName(storeUrl: string, userId: string | null): string {
  return `${digest([storeUrl, userId]).slice(0, 16)}.json`;
}

function isCachedFile(value: unknown): value is CachedFile {
  if (!isFields(value) || typeof value.size !== "number" || typeof value.mtimeMs !== "number") return false;
  return Array.isArray(value.sessions) && value.sessions.every((id) => typeof id === "string");
}
