import { readdir, readFile, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import { makePrivateDirectory, openPrivateFile, replacePrivateFile } from "../../internal/private-file.ts";
import { SessionDamagedError } from "../../session/errors.ts";
import type { CheckpointTable } from "../../session/store-driver.ts";
import type { Checkpoint } from "../../session/store.ts";
import { checkCheckpointId, oldestFirst } from "../complete/valid-checkpoint.ts";
import { type FileStamp, sameStamp, stampOf } from "./log-index.ts";
import { jsonErrorOf } from "./log-line.ts";
import { writeAll } from "./write-file-atomically.ts";
import { STATE_FOLDER } from "./file-names.ts";
import type { SessionDirectory } from "./session-directory.ts";
import type { SessionFiles } from "./session-files.ts";
import { withStoreErrors, missingAsNull, storeFailed } from "./store-failure.ts";

/** How many records of deleted checkpoints a file may contain before it is rewritten without them. */
const DEAD_RECORDS_MAX = 256;

/** One line of a checkpoint file. */
type CheckpointRecord = { readonly save: Checkpoint } | { readonly delete: string };

/** The cached content of one session's checkpoint file. */
interface CachedFile {
  readonly stamp: FileStamp;
  readonly checkpoints: ReadonlyMap<string, Checkpoint>;
  /** The offset after the last complete line. */
  readonly end: number;
  readonly records: number;
}

interface FoundCheckpoint {
  readonly path: string;
  readonly checkpoint: Checkpoint;
}

const NO_FILE: CachedFile = { stamp: { ino: 0, size: 0, mtimeMs: 0 }, checkpoints: new Map(), end: 0, records: 0 };

/**
 * Keeps the checkpoints of each session in a file beside its log, with one line for each save or delete. Writes of other
 * processes are detected by the file's stamp. Writing needs the directory's lock.
 */
export class CheckpointFiles implements CheckpointTable {
  readonly #files: SessionFiles;
  readonly #cache = new Map<string, CachedFile>();

  constructor(files: SessionFiles) {
    this.#files = files;
  }

  load(id: string): Promise<Checkpoint | null> {
    return withStoreErrors(async () => (await this.#find(id))?.checkpoint ?? null);
  }

  list(sessionId: string, deleted: boolean): Promise<Checkpoint[]> {
    return withStoreErrors(async () => {
      const file = await (deleted ? this.#files.trash : this.#files.live).find(sessionId);
      return file === null ? [] : oldestFirst([...(await this.#read(file.paths.checkpoints)).checkpoints.values()]);
    });
  }

  save(checkpoint: Checkpoint): Promise<void> {
    return this.#files.change(async () => {
      const { paths } = await this.#files.live.existing(checkpoint.sessionId);
      // A deleted session can be restored with its checkpoints, so their ids stay in use.
      const found = await this.#findIn(checkpoint.id, [this.#files.live, this.#files.trash]);
      if (found === null) await this.#append(paths.checkpoints, { save: checkpoint });
      else checkCheckpointId(found.checkpoint, checkpoint);
    });
  }

  /** Replaces a checkpoint, and removes its old content from the file. Resolves to false if no checkpoint has this id. */
  replace(checkpoint: Checkpoint): Promise<boolean> {
    return this.#files.change(async () => {
      const found = await this.#find(checkpoint.id);
      if (found === null) return false;
      const { checkpoints } = await this.#read(found.path);
      await this.#rewrite(found.path, new Map([...checkpoints, [checkpoint.id, checkpoint]]).values());
      return true;
    });
  }

  /** Rewrites every file without the content of deleted checkpoints. */
  rewrite(): Promise<void> {
    return this.#files.change(async () => {
      for (const path of await this.#pathsIn([this.#files.live, this.#files.trash])) {
        const { records, checkpoints } = await this.#read(path);
        if (records > checkpoints.size) await this.#rewrite(path, checkpoints.values());
      }
    });
  }

  delete(id: string): Promise<boolean> {
    return this.#files.change(async () => {
      const found = await this.#find(id);
      if (found !== null) await this.#append(found.path, { delete: id });
      return found !== null;
    });
  }

  /** The checkpoint with an id and the path of its file; null if there is none, or its session is deleted. */
  async #find(id: string): Promise<FoundCheckpoint | null> {
    const found = await this.#findIn(id, [this.#files.live]);
    return found === null || (await this.#files.live.locate(found.checkpoint.sessionId)) === null ? null : found;
  }

  async #findIn(id: string, directories: readonly SessionDirectory[]): Promise<FoundCheckpoint | null> {
    const known = [...this.#cache].filter(([, { checkpoints }]) => checkpoints.has(id)).map(([path]) => path);
    for (const path of [...known, ...(await this.#pathsIn(directories))]) {
      const checkpoint = (await this.#read(path)).checkpoints.get(id);
      if (checkpoint !== undefined) return { path, checkpoint };
    }
    return null;
  }

  async #pathsIn(directories: readonly SessionDirectory[]): Promise<string[]> {
    const paths: string[] = [];
    for (const directory of directories) {
      paths.push(...(await filesIn(join(directory.path, STATE_FOLDER))));
      paths.push(...directory.outside().map(({ paths }) => paths.checkpoints));
    }
    return paths;
  }

  async #read(path: string): Promise<CachedFile> {
    const stats = await stat(path).catch(missingAsNull);
    const known = this.#cache.get(path);
    if (stats === null) {
      this.#cache.delete(path);
      return NO_FILE;
    }
    const stamp = stampOf(stats);
    if (known !== undefined && sameStamp(known.stamp, stamp)) return known;
    const file = parseFile(path, await readFile(path), stamp);
    this.#cache.set(path, file);
    return file;
  }

  async #rewrite(path: string, checkpoints: Iterable<Checkpoint>, ...more: CheckpointRecord[]): Promise<void> {
    const records = [...[...checkpoints].map((save) => ({ save })), ...more];
    const text = records.map((record) => `${JSON.stringify(record)}\n`).join("");
    await replacePrivateFile(path, text, { flush: this.#files.options.durability === "fsync" });
  }

  async #append(path: string, record: CheckpointRecord): Promise<void> {
    const { end, records, checkpoints } = await this.#read(path);
    const flush = this.#files.options.durability === "fsync";
    if (records - checkpoints.size > DEAD_RECORDS_MAX + checkpoints.size)
      return this.#rewrite(path, checkpoints.values(), record);
    await makePrivateDirectory(dirname(path));
    await using handle = await openPrivateFile(path, end === 0 ? "w" : "r+");
    try {
      // Remove the torn write of a crashed process.
      await handle.truncate(end);
      writeAll(handle.fd, `${JSON.stringify(record)}\n`, end);
      if (flush) await handle.sync();
    } catch (cause) {
      await handle.truncate(end).catch(() => {});
      throw storeFailed(`${path} could not be written, and is unchanged`, cause);
    }
  }
}

async function filesIn(directory: string): Promise<string[]> {
  const names = (await readdir(directory).catch(missingAsNull)) ?? [];
  return names.filter((name) => name.endsWith(".checkpoints")).map((name) => join(directory, name));
}

function parseFile(path: string, bytes: Buffer, stamp: FileStamp): CachedFile {
  const end = bytes.lastIndexOf(10) + 1;
  const checkpoints = new Map<string, Checkpoint>();
  const lines = end === 0 ? [] : bytes.toString("utf8", 0, end - 1).split("\n");
  for (const [index, line] of lines.entries()) {
    const record = parseRecord(line);
    if (record === null) {
      const offset = Buffer.byteLength(lines.slice(0, index).join("\n"));
      const reason = "it is not the record of a checkpoint";
      throw new SessionDamagedError({ path, line: index + 1, offset, reason, cause: jsonErrorOf(line) });
    }
    if ("delete" in record) checkpoints.delete(record.delete);
    else checkpoints.set(record.save.id, freezeDeep(record.save));
  }
  return { stamp, checkpoints, end, records: lines.length };
}

function parseRecord(line: string): CheckpointRecord | null {
  try {
    const record = JSON.parse(line) as CheckpointRecord | null;
    if (typeof record !== "object" || record === null) return null;
    if ("delete" in record) return typeof record.delete === "string" ? record : null;
    return typeof record.save?.id === "string" ? record : null;
  } catch {
    return null;
  }
}
