import { join } from "node:path";
import { uuidv7 } from "../internal/uuid.ts";
import type { Entry, EntryDraft } from "../session/log/entry.ts";
import { SessionBusyError, SessionError } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { SessionHeader } from "../session/log/header.ts";
import type { AppendOptions, AppendResult, SessionStore } from "../session/store.ts";
import type { Damage, JsonlStore } from "../stores/jsonl/index.ts";
import { sessionFileName } from "../stores/jsonl/file-names.ts";
import { openSessionFiles } from "./open-session-files.ts";
import { openMemoryStore } from "../stores/memory/index.ts";
import type { FileOptions } from "./file-options.ts";
import { defaultSessionDirectory } from "./home.ts";
import type { OpenedSession, TreeBacking } from "./tree-backing.ts";
import { WriterMark } from "./writer-mark.ts";

type PersistFrom = NonNullable<FileOptions["persistFrom"]>;

/** A session in its own file. It is kept in memory until it contains what `persistFrom` says; then the file is written. */
export class FileBacking implements TreeBacking {
  readonly path: string;
  readonly damage: readonly Damage[];
  readonly #files: JsonlStore;
  readonly #options: FileOptions;
  readonly #mark: WriterMark;
  #marked = false;
  #queued = 0;
  #readOnly = false;
  #memory: SessionStore | null;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(init: {
    files: JsonlStore;
    path: string;
    damage?: readonly Damage[];
    memory?: SessionStore;
    options: FileOptions;
  }) {
    this.#files = init.files;
    this.path = init.path;
    this.damage = init.damage ?? [];
    this.#memory = init.memory ?? null;
    this.#options = init.options;
    this.#mark = new WriterMark(init.path);
  }

  /** Opens the session in an existing file. */
  static async open(path: string, files: JsonlStore, sessionId: string, options: FileOptions): Promise<FileBacking> {
    const backing = new FileBacking({ files, path, damage: await files.damageOf(sessionId), options });
    if (
      options.ifInUse !== undefined &&
      options.ifInUse !== "share" &&
      options.readOnly !== true &&
      options.salvage !== true
    ) {
      await backing.#claim(sessionId);
    }
    return backing;
  }

  /** Creates a session: in a file if it already contains what `persistFrom` says, otherwise in memory until it does. */
  static async create(header: SessionHeader, entries: readonly Entry[], options: FileOptions): Promise<OpenedSession> {
    const directory = options.directory ?? defaultSessionDirectory();
    const files = await openFiles(directory, options);
    const path = join(directory, sessionFileName(header));
    if (isReadyForFile(entries, options.persistFrom ?? "assistant")) {
      const head = await files.create(header, { entries });
      return { backing: new FileBacking({ files, path, options }), head };
    }
    const memory = openMemoryStore();
    const head = await memory.create(header, { entries });
    return { backing: new FileBacking({ files, path, memory, options }), head };
  }

  get store(): SessionStore {
    return this.#memory ?? this.#files;
  }

  get persisted(): boolean {
    return this.#memory === null;
  }

  roomIn(): null {
    return null;
  }

  append(sessionId: string, drafts: readonly EntryDraft[], options?: AppendOptions): Promise<AppendResult> {
    if (this.#readOnly)
      return Promise.reject(
        new SessionError("READ_ONLY", `${this.path} was opened read-only; open it for writing first.`),
      );
    if (this.#memory === null && this.#marked && this.#queued === 0)
      return this.#files.append(sessionId, drafts, options);
    // Until the session's file and this writer's mark exist, appends are queued.
    return this.#serialize(async () => {
      if (this.#memory !== null && !isReadyForFile(drafts, this.#options.persistFrom ?? "assistant")) {
        return this.#memory.append(sessionId, drafts, options);
      }
      if (!this.#marked) await this.#placeMark();
      return this.#memory === null
        ? this.#files.append(sessionId, drafts, options)
        : this.#persist(sessionId, this.#memory, drafts, options);
    });
  }

  flush(sessionId: string): Promise<SessionHead | null> {
    return this.#serialize(async () => {
      if (this.#memory === null) return null;
      return (await this.#persist(sessionId, this.#memory, [], undefined)).head;
    });
  }

  derive(header: SessionHeader, entries: readonly Entry[], options: FileOptions): Promise<OpenedSession> {
    // A new session is writable, even if this one was opened read-only or for salvage.
    const { readOnly: _readOnly, salvage: _salvage, ...inherited } = this.#options;
    return FileBacking.create(header, entries, { ...inherited, ...options });
  }

  async close(): Promise<void> {
    await this.#last.catch(() => {});
    await this.#memory?.close();
    await this.#files.close();
    if (this.#marked) await this.#mark.remove().catch(() => {});
  }

  /** Creates this writer's mark, which only informs others. Failures are ignored: the append itself will report them. */
  async #placeMark(): Promise<void> {
    await this.#mark.create().catch(() => {});
    this.#marked = true;
  }

  /**
   * Becomes the file's writer, unless there is another. Creates its mark before it searches for others, so that two
   * concurrent callers see each other.
   */
  async #claim(sessionId: string): Promise<void> {
    await this.#mark.create();
    this.#marked = true;
    const other = await this.#mark.findOther();
    if (other === null) return;
    await this.#mark.remove();
    this.#marked = false;
    if (this.#options.ifInUse === "refuse") throw new SessionBusyError(sessionId, other);
    this.#readOnly = true;
  }

  /**
   * Writes the session in memory and these drafts to a new file. The drafts are first appended to a fork in memory, so that
   * the session in memory is unchanged if the write fails, and the append can be tried again.
   */
  async #persist(
    sessionId: string,
    memory: SessionStore,
    drafts: readonly EntryDraft[],
    options: AppendOptions | undefined,
  ): Promise<AppendResult> {
    const { header } = (await memory.head(sessionId)) as SessionHead;
    const trialFork = await memory.fork(sessionId, { ...header, id: uuidv7() });
    try {
      const { entries } = await memory.append(trialFork.header.id, drafts, options);
      const log: Entry[] = [];
      for await (const entry of memory.read(trialFork.header.id)) log.push(entry);
      const head = await this.#files.create(header, { entries: log });
      this.#memory = null;
      return { version: head.version, entries, head };
    } finally {
      await memory.delete(trialFork.header.id);
      await memory.purge("9999-12-31T00:00:00.000Z");
    }
  }

  #serialize<T>(task: () => Promise<T>): Promise<T> {
    this.#queued++;
    const done = this.#last.then(task).finally(() => this.#queued--);
    this.#last = done.catch(() => {});
    return done;
  }
}

/** Opens the store of a directory of session files with the options of a tree. */
export function openFiles(directory: string, options: FileOptions): Promise<JsonlStore> {
  const { durability, readOnly, salvage } = options;
  return openSessionFiles({
    directory,
    ...(durability === undefined ? {} : { durability }),
    ...(readOnly === undefined ? {} : { readOnly }),
    ...(salvage === undefined ? {} : { salvage }),
  });
}

function isReadyForFile(entries: readonly EntryDraft[] | readonly Entry[], persistFrom: PersistFrom): boolean {
  if (persistFrom === "create") return true;
  return entries.some(
    (entry) => entry?.type === "message" && (persistFrom === "message" || entry.message?.role === "assistant"),
  );
}
