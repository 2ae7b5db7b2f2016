import { readFile, rename } from "node:fs/promises";
import { dirname } from "node:path";
import { makePrivateDirectory, writePrivateFile } from "../../internal/private-file.ts";
import { digest } from "./foreign-id.ts";
import { isFields } from "./foreign-values.ts";

/** How a file was when it was imported, and which sessions it became. */
export interface RememberedFile {
  readonly size: number;
  readonly mtimeMs: number;
  readonly sessions: readonly string[];
}

/**
 * Remembers which files were imported and how they were then, so that the next import reads only what has changed. It may be
 * lost at any time: that costs the time to read all again, as no entry is added twice.
 */
export class ImportMemory {
  readonly #path: string;
  readonly #files: Map<string, RememberedFile>;

  private constructor(path: string, files: Map<string, RememberedFile>) {
    this.#path = path;
    this.#files = files;
  }

  /** What was written down there; nothing where that cannot be read. */
  static async open(path: string): Promise<ImportMemory> {
    const files = new Map<string, RememberedFile>();
    try {
      const value: unknown = JSON.parse(await readFile(path, "utf8"));
      for (const [file, seen] of Object.entries(isFields(value) ? value : {}))
        if (isRemembered(seen)) files.set(file, seen);
    } catch {
      // It is not there, or damaged: all is read again.
    }
    return new ImportMemory(path, files);
  }

  /** The sessions that a file became, if it has not changed since; null where it must be read. */
  recall(file: string, size: number, mtimeMs: number): readonly string[] | null {
    const seen = this.#files.get(file);
    return seen !== undefined && seen.size === size && seen.mtimeMs === mtimeMs ? seen.sessions : null;
  }

  remember(file: string, seen: RememberedFile): void {
    this.#files.set(file, seen);
  }

  async save(): Promise<void> {
    await makePrivateDirectory(dirname(this.#path));
    const temporary = `${this.#path}.${process.pid}.tmp`;
    await writePrivateFile(temporary, JSON.stringify(Object.fromEntries(this.#files)));
    await rename(temporary, this.#path);
  }
}

/** The name of the file that remembers what one user has imported into one store. */
export function importMemoryName(storeUrl: string, userId: string | null): string {
  return `${digest([storeUrl, userId]).slice(0, 16)}.json`;
}

function isRemembered(value: unknown): value is RememberedFile {
  if (!isFields(value) || typeof value.size !== "number" || typeof value.mtimeMs !== "number") return false;
  return Array.isArray(value.sessions) && value.sessions.every((id) => typeof id === "string");
}
