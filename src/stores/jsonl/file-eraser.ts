import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { replacePrivateFile } from "../../internal/private-file.ts";
import type { StoreEraser } from "../../session/store.ts";
import type { CheckpointFiles } from "./checkpoint-files.ts";
import { STATE_FOLDER } from "./file-names.ts";
import type { SessionFiles } from "./session-files.ts";
import { withStoreErrors, missingAsNull } from "./store-failure.ts";

/** The eraser of a JSONL store. It replaces the logs of session files, and keeps marks in a file beside them. */
export function createFileEraser(files: SessionFiles, checkpoints: CheckpointFiles): StoreEraser {
  const path = join(files.options.directory, STATE_FOLDER, "marks.json");
  const readAll = async (): Promise<Map<string, string>> => {
    const text = await readFile(path, "utf8").catch(missingAsNull);
    return new Map(text === null ? [] : (JSON.parse(text) as [string, string][]));
  };
  return {
    replace: (sessionId, version, entries) =>
      withStoreErrors(async () => {
        files.checkWritable();
        return (await files.live.existing(sessionId)).writer.replace(version, entries);
      }),
    replaceCheckpoint: (checkpoint) => checkpoints.replace(checkpoint),
    rewrite: () => checkpoints.rewrite(),
    async readMarks(keys) {
      const marks = await withStoreErrors(readAll);
      if (keys === undefined) return marks;
      return new Map(keys.flatMap((key) => (marks.has(key) ? [[key, marks.get(key) as string]] : [])));
    },
    writeMarks: (changes) =>
      files.change(async () => {
        const marks = await readAll();
        for (const [key, value] of changes) {
          if (value === null) marks.delete(key);
          else marks.set(key, value);
        }
        const flush = files.options.durability === "fsync";
        await replacePrivateFile(path, JSON.stringify([...marks]), { flush });
      }),
  };
}
