import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { replacePrivateFile } from "../../internal/private-file.ts";
import type { Entry } from "../../session/entry.ts";
import type { StoreEraser } from "../../session/store.ts";
import { STATE_FOLDER } from "./places.ts";
import type { SessionFiles } from "./session-files.ts";
import { guarded, missingAsNull } from "./store-failure.ts";

/** Replaces the logs of session files, and keeps marks in a file beside them. */
export class FileEraser implements StoreEraser {
  readonly #files: SessionFiles;
  readonly #path: string;

  constructor(files: SessionFiles) {
    this.#files = files;
    this.#path = join(files.options.directory, STATE_FOLDER, "marks.json");
  }

  replace(sessionId: string, version: number, entries: readonly Entry[]): Promise<boolean> {
    return guarded(async () => {
      this.#files.checkWritable();
      return (await this.#files.live.existing(sessionId)).writer.replace(version, entries);
    });
  }

  async readMarks(keys?: readonly string[]): Promise<ReadonlyMap<string, string>> {
    const marks = await guarded(() => this.#read());
    return keys === undefined
      ? marks
      : new Map(keys.flatMap((key) => (marks.has(key) ? [[key, marks.get(key) as string]] : [])));
  }

  writeMarks(changes: ReadonlyMap<string, string | null>): Promise<void> {
    return guarded(() =>
      this.#files.change(async () => {
        const marks = await this.#read();
        for (const [key, value] of changes) {
          if (value === null) marks.delete(key);
          else marks.set(key, value);
        }
        const flush = this.#files.options.durability === "fsync";
        await replacePrivateFile(this.#path, JSON.stringify([...marks]), { flush });
      }),
    );
  }

  async #read(): Promise<Map<string, string>> {
    const text = await readFile(this.#path, "utf8").catch(missingAsNull);
    return new Map(text === null ? [] : (JSON.parse(text) as [string, string][]));
  }
}
