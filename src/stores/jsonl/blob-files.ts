import { join } from "node:path";
import type { BlobStore } from "../../session/blob.ts";
import { fileBlobs } from "../blobs/file-blobs.ts";
import { BLOBS_FOLDER } from "./file-names.ts";
import type { SessionFiles } from "./session-files.ts";
import { asStoreError, withStoreErrors } from "./store-failure.ts";

/** The blobs of a JSONL store, as files beside its session files. A store that may not write refuses to store and remove blobs. */
export function createBlobFiles(files: SessionFiles): BlobStore {
  const { directory, durability, clock } = files.options;
  const blobs = fileBlobs(join(directory, BLOBS_FOLDER), { durability, clock });
  const change = <T>(task: () => Promise<T>): Promise<T> =>
    withStoreErrors(() => {
      files.checkWritable();
      return task();
    });
  return {
    put: (key, source) => change(() => blobs.put(key, source)),
    renew: (key) => change(() => blobs.renew(key)),
    remove: (key, renewedAt) => change(() => blobs.remove(key, renewedAt)),
    size: (key) => withStoreErrors(() => blobs.size(key)),
    async *read(key, start, end) {
      try {
        yield* blobs.read(key, start, end);
      } catch (error) {
        throw asStoreError(error);
      }
    },
    list: (scope) => blobs.list(scope),
  };
}
