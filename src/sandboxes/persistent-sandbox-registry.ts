import { checkPath } from "../stores/complete/valid-arguments.ts";
import { checkOptionsOf, type KeysOf } from "../session/check-arguments.ts";
import { readFile, rename, unlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { makePrivateDirectory, writePrivateFile } from "../internal/private-file.ts";
import { FileLock } from "../internal/file-lock.ts";
import { copyJson, type JsonObject } from "../internal/json.ts";
import { uuidv7 } from "../internal/uuid.ts";
import { SessionError, show } from "../session/errors.ts";
import { sandboxBackend } from "../session/sandbox/sandbox-backends.ts";
import { type Sandbox, SandboxError, type SandboxSpec } from "../session/sandbox/sandbox.ts";
import { skeinHome } from "../tree/home.ts";
import { isTemporaryDirectoryUsed, isTemporaryId, removeTemporaryDirectory } from "./local/temporary-directory.ts";
import "./register-built-in.ts";

const LOCK_MS_MAX = 10_000;
const FORMAT_VERSION = 1;

/** Options of a `PersistentSandboxRegistry`. */
export interface PersistentSandboxRegistryOptions {
  /** The file (default: `sandboxes.json` under Skein's home). */
  readonly path?: string;
}

/** A sandbox to record. */
export interface SandboxRecord {
  readonly backend: string;
  readonly id: string;
  readonly spec: SandboxSpec;
  readonly sessionId?: string | null;
  readonly metadata?: JsonObject;
}

/** A recorded sandbox, with the times of its first record and of its last use. */
export interface RecordedSandbox {
  readonly backend: string;
  readonly id: string;
  readonly spec: SandboxSpec;
  readonly sessionId: string | null;
  readonly metadata: JsonObject;
  readonly createdAt: string;
  readonly touchedAt: string;
}

/**
 * Records sandboxes in a file, so that later processes can reattach to them.
 *
 * - Several processes may use the same file: every change takes a lock and replaces the file atomically.
 * - An invalid file is refused (`DAMAGED`) and never overwritten.
 * - The file is readable for its owner only: it holds the specs with their environment variables.
 */
export class PersistentSandboxRegistry {
  readonly path: string;

  constructor(options: PersistentSandboxRegistryOptions = {}) {
    checkOptionsOf(
      options,
      { path: true } satisfies KeysOf<PersistentSandboxRegistryOptions>,
      "PersistentSandboxRegistry",
    );
    if (options.path !== undefined) checkPath(options.path, "path");
    this.path = resolve(options.path ?? join(skeinHome(), "sandboxes.json"));
  }

  /** Records a sandbox; an open sandbox can be passed directly. Replaces a record with the same id, but keeps its first time. */
  async record(entry: SandboxRecord): Promise<RecordedSandbox> {
    const now = new Date().toISOString();
    const { backend, id, spec, sessionId = null, metadata = {} } = entry;
    const made = checkRecord({ backend, id, spec, sessionId, metadata, createdAt: now, touchedAt: now });
    return this.#change((entries) => {
      const before = entries.find((each) => each.id === id);
      const recorded = { ...made, createdAt: before?.createdAt ?? now };
      return { entries: [...entries.filter((each) => each.id !== id), recorded], result: recorded };
    });
  }

  /** All recorded sandboxes, in the order of their last record. */
  async list(): Promise<RecordedSandbox[]> {
    return readEntries(this.path);
  }

  /** Sets the time of last use to now; false if the sandbox is not recorded. */
  async touch(id: string): Promise<boolean> {
    const touchedAt = new Date().toISOString();
    return this.#change((entries) => {
      if (!entries.some((each) => each.id === id)) return { entries, result: false };
      return { entries: entries.map((each) => (each.id === id ? { ...each, touchedAt } : each)), result: true };
    });
  }

  /** Reattaches to a recorded sandbox. @throws {SandboxError} `file_not_found` if it is not recorded or no longer exists. */
  async reattach(id: string): Promise<Sandbox> {
    const entry = (await this.list()).find((each) => each.id === id);
    if (entry === undefined) throw new SandboxError("file_not_found", `No sandbox ${show(id)} is recorded.`);
    const backend = await sandboxBackend(entry.backend);
    if (backend.attach === undefined) {
      throw new SandboxError("unsupported", `The sandbox backend ${show(entry.backend)} cannot find a sandbox again.`);
    }
    const sandbox = await backend.attach(id, entry.spec);
    await this.touch(id);
    return sandbox;
  }

  /** Removes the record of a sandbox, not the sandbox itself; false if it was not recorded. */
  async forget(id: string): Promise<boolean> {
    return this.#change((entries) => {
      if (!entries.some((each) => each.id === id)) return { entries, result: false };
      return { entries: entries.filter((each) => each.id !== id), result: true };
    });
  }

  /**
   * Removes the temporary directory that a local sandbox created, and its record; false if it is not recorded. A directory
   * given as `workingDir` is never removed.
   *
   * @throws {SandboxError} `not_permitted` while a sandbox of this process uses the directory: close it first.
   */
  async deleteLocal(id: string): Promise<boolean> {
    const entry = (await this.list()).find((each) => each.id === id);
    if (entry === undefined || !ownsDirectory(entry)) return false;
    if (isTemporaryDirectoryUsed(id)) {
      throw new SandboxError("not_permitted", `The sandbox ${show(id)} is open in this process; close it instead.`);
    }
    const removed = await removeTemporaryDirectory(id);
    await this.forget(id);
    return removed;
  }

  /**
   * Removes the records of sandboxes that were last used before a time, and the temporary directories of local ones. Returns
   * their ids. Sandboxes that are open in this process are kept; use by another process is not detected.
   */
  async prune(options: { readonly olderThan: Date }): Promise<string[]> {
    const before = options?.olderThan?.getTime?.();
    if (!Number.isFinite(before)) {
      throw new SessionError("INVALID_OPTION", "Pruning needs a valid Date as olderThan.");
    }
    const pruned = await this.#change((entries) => {
      const old = entries.filter(
        ({ id, touchedAt }) => Date.parse(touchedAt) < before && !isTemporaryDirectoryUsed(id),
      );
      return { entries: entries.filter((each) => !old.includes(each)), result: old };
    });
    for (const entry of pruned) if (ownsDirectory(entry)) await removeTemporaryDirectory(entry.id);
    return pruned.map(({ id }) => id);
  }

  async #change<T>(
    change: (entries: readonly RecordedSandbox[]) => { entries: readonly RecordedSandbox[]; result: T },
  ): Promise<T> {
    await makePrivateDirectory(dirname(this.path));
    const lock = new FileLock(`${this.path}.lock`);
    const holder = await lock.acquire(LOCK_MS_MAX);
    if (holder !== null) {
      throw new SessionError("SESSION_BUSY", `${this.path} is in use by process ${holder.pid}; try again later.`);
    }
    try {
      const before = await readEntries(this.path);
      const { entries, result } = change(before);
      if (entries === before) return result;
      await replaceFile(this.path, `${JSON.stringify({ version: FORMAT_VERSION, sandboxes: entries }, null, 2)}\n`);
      return result;
    } finally {
      await lock.release();
    }
  }
}

function ownsDirectory({ backend, id, spec }: RecordedSandbox): boolean {
  return backend === "local" && isTemporaryId(id) && spec.workingDir === undefined;
}

async function readEntries(path: string): Promise<RecordedSandbox[]> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
  let version: unknown;
  try {
    const file = JSON.parse(text) as { version?: unknown; sandboxes?: unknown };
    version = file.version;
    if (version === FORMAT_VERSION && Array.isArray(file.sandboxes)) return file.sandboxes.map(parseRecord);
  } catch (cause) {
    throw damaged(path, (cause as Error).message, cause);
  }
  if (typeof version === "number" && version > FORMAT_VERSION) {
    throw new SessionError("UNSUPPORTED_VERSION", `${path} has the format ${version}, which only a newer Skein reads.`);
  }
  throw damaged(path, "it is not a list of sandboxes");
}

function damaged(path: string, problem: string, cause?: unknown): SessionError {
  const message = `${path} is damaged (${problem}) and was left as it is; repair it or move it away.`;
  return new SessionError("DAMAGED", message, { cause });
}

function checkRecord(value: RecordedSandbox): RecordedSandbox {
  try {
    return parseRecord(value);
  } catch (cause) {
    throw new SessionError("INVALID_VALUE", `The sandbox cannot be recorded: ${(cause as Error).message}.`, { cause });
  }
}

/** A frozen copy of a record. @throws {Error} if the record is invalid. */
function parseRecord(value: unknown): RecordedSandbox {
  const copy = copyJson(value, "sandbox") as JsonObject | null;
  const { backend, id, spec, sessionId, metadata, createdAt, touchedAt } = copy ?? {};
  const texts = [backend, id].every((each) => typeof each === "string" && each !== "");
  const times = [createdAt, touchedAt].every((each) => typeof each === "string" && !Number.isNaN(Date.parse(each)));
  const objects = [spec, metadata].every((each) => typeof each === "object" && each !== null && !Array.isArray(each));
  if (!texts || !times || !objects || !(sessionId === null || typeof sessionId === "string")) {
    throw new TypeError(`the record of ${show(id)} lacks a part or has a wrong one`);
  }
  return copy as unknown as RecordedSandbox;
}

async function replaceFile(path: string, text: string): Promise<void> {
  const scratch = `${path}.${uuidv7()}.tmp`;
  try {
    await writePrivateFile(scratch, text, { flag: "wx", flush: true });
    await rename(scratch, path);
  } catch (error) {
    await unlink(scratch).catch(() => {});
    throw error;
  }
}
