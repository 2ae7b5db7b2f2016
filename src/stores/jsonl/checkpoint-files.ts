import { readdir, readFile, rename, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makePrivateDirectory, writePrivateFile } from "../../internal/private-file.ts";
import { sameJson } from "../../internal/json.ts";
import { SessionDamagedError, SessionError, show } from "../../session/errors.ts";
import type { Checkpoint } from "../../session/store.ts";
import { type FileStamp, sameStamp, stampOf } from "./log-index.ts";
import type { WriteOptions } from "./new-file.ts";
import { STATE_FOLDER, TRASH_FOLDER } from "./places.ts";
import { missingAsNull, storeFailed } from "./store-failure.ts";

/** One line of a checkpoint file. Earlier versions also wrote down what was deleted. */
type CheckpointRecord = { readonly save: Checkpoint } | { readonly delete: string };

/** What one session's file of checkpoints holds, by id, in the order they were saved. */
type Checkpoints = ReadonlyMap<string, Checkpoint>;

/**
 * Keeps the checkpoints of each session in a file beside it, one line for each, which is put in place of the one before. What
 * others write is found by looking at the file; whoever writes must hold the directory's lock.
 */
export class CheckpointFiles {
  readonly #directory: string;
  readonly #trash: string;
  readonly #options: WriteOptions;
  readonly #known = new Map<string, { readonly stamp: FileStamp; readonly checkpoints: Checkpoints }>();
  readonly #places = new Map<string, string>();

  constructor(directory: string, options: WriteOptions) {
    this.#directory = join(directory, STATE_FOLDER);
    this.#trash = join(directory, TRASH_FOLDER, STATE_FOLDER);
    this.#options = options;
  }

  /** The checkpoint of that id and the file it is in, or null. `others` are files outside of the directory. */
  async find(
    id: string,
    others: readonly string[],
  ): Promise<{ readonly path: string; readonly checkpoint: Checkpoint } | null> {
    const place = this.#places.get(id);
    const paths = place === undefined ? [] : [place];
    for (const path of [...paths, ...(await filesIn(this.#directory)), ...others]) {
      const checkpoint = (await this.#read(path)).get(id);
      if (checkpoint !== undefined) return { path, checkpoint };
    }
    return null;
  }

  /** The checkpoints in a file, the oldest first, equal times in the order they were saved. */
  async list(path: string): Promise<Checkpoint[]> {
    const checkpoints = await this.#read(path);
    return [...checkpoints.values()].sort((a, b) =>
      a.createdAt === b.createdAt ? 0 : a.createdAt < b.createdAt ? -1 : 1,
    );
  }

  /** @throws {SessionError} `CHECKPOINT_EXISTS` when there is one of that id with other content. */
  async save(path: string, checkpoint: Checkpoint, others: readonly string[]): Promise<void> {
    // A deleted session can be brought back, and its checkpoints with it, so their ids stay taken.
    const found = await this.find(checkpoint.id, [...others, ...(await filesIn(this.#trash))]);
    if (found === null) return this.#write(path, [...(await this.#read(path)).values(), checkpoint]);
    if (sameJson(found.checkpoint, checkpoint)) return;
    throw new SessionError(
      "CHECKPOINT_EXISTS",
      `There is already a checkpoint ${show(checkpoint.id)} with other content; use another id.`,
    );
  }

  async delete(path: string, id: string): Promise<void> {
    const checkpoints = await this.#read(path);
    await this.#write(
      path,
      [...checkpoints.values()].filter((checkpoint) => checkpoint.id !== id),
    );
  }

  async #read(path: string): Promise<Checkpoints> {
    const stats = await stat(path).catch(missingAsNull);
    const known = this.#known.get(path);
    if (stats === null) {
      this.#known.delete(path);
      return new Map();
    }
    if (known !== undefined && sameStamp(known.stamp, stats)) return known.checkpoints;
    const checkpoints = parseFile(path, await readFile(path, "utf8"));
    this.#known.set(path, { stamp: stampOf(stats), checkpoints });
    for (const id of checkpoints.keys()) this.#places.set(id, path);
    return checkpoints;
  }

  async #write(path: string, checkpoints: readonly Checkpoint[]): Promise<void> {
    const temporary = `${path}.tmp`;
    try {
      await makePrivateDirectory(dirname(path));
      const text = checkpoints.map((save) => `${JSON.stringify({ save })}\n`).join("");
      await writePrivateFile(temporary, text, { flush: this.#options.durability === "fsync" });
      await rename(temporary, path);
    } catch (cause) {
      throw storeFailed(`${path} could not be written, and is as it was`, cause);
    }
  }
}

async function filesIn(directory: string): Promise<string[]> {
  const names = (await readdir(directory).catch(missingAsNull)) ?? [];
  return names.filter((name) => name.endsWith(".checkpoints")).map((name) => join(directory, name));
}

function parseFile(path: string, text: string): Checkpoints {
  const checkpoints = new Map<string, Checkpoint>();
  // What stands after the last line's end is a write of an earlier version that was cut short.
  const lines = text.split("\n").slice(0, -1);
  for (const [index, line] of lines.entries()) {
    const record = parseRecord(line);
    if (record === null) {
      const offset = Buffer.byteLength(lines.slice(0, index).join("\n"));
      throw new SessionDamagedError({ path, line: index + 1, offset, reason: "it is not the record of a checkpoint" });
    }
    if ("delete" in record) checkpoints.delete(record.delete);
    else checkpoints.set(record.save.id, record.save);
  }
  return checkpoints;
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
