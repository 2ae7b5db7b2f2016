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

/** A session in a file of its own. Until it is worth a file it is kept in memory; then all of it is written at once. */
export class FileBacking implements TreeBacking {
  readonly path: string;
  readonly damage: readonly Damage[];
  readonly #files: JsonlStore;
  readonly #options: FileOptions;
  readonly #mark: WriterMark;
  #marked = false;
  #inLine = 0;
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

  /** The session in an existing file. */
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

  /** A new session: a file when it already holds what it waits for, else in memory until it does. */
  static async create(header: SessionHeader, entries: readonly Entry[], options: FileOptions): Promise<OpenedSession> {
    const directory = options.directory ?? defaultSessionDirectory();
    const files = await openFiles(directory, options);
    const path = join(directory, sessionFileName(header));
    if (isWorthAFile(entries, options.persistFrom ?? "assistant")) {
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
    if (this.#memory === null && this.#marked && this.#inLine === 0)
      return this.#files.append(sessionId, drafts, options);
    // Until the session has its file, and others know that it has a writer, appends stand in line.
    return this.#inTurn(async () => {
      if (this.#memory !== null && !isWorthAFile(drafts, this.#options.persistFrom ?? "assistant")) {
        return this.#memory.append(sessionId, drafts, options);
      }
      if (!this.#marked) await this.#placeMark();
      return this.#memory === null
        ? this.#files.append(sessionId, drafts, options)
        : this.#persist(sessionId, this.#memory, drafts, options);
    });
  }

  flush(sessionId: string): Promise<SessionHead | null> {
    return this.#inTurn(async () => {
      if (this.#memory === null) return null;
      return (await this.#persist(sessionId, this.#memory, [], undefined)).head;
    });
  }

  derive(header: SessionHeader, entries: readonly Entry[], options: FileOptions): Promise<OpenedSession> {
    // What kept this one from being written says nothing about the new one.
    const { readOnly: _readOnly, salvage: _salvage, ...inherited } = this.#options;
    return FileBacking.create(header, entries, { ...inherited, ...options });
  }

  async close(): Promise<void> {
    await this.#last.catch(() => {});
    await this.#memory?.close();
    await this.#files.close();
    if (this.#marked) await this.#mark.remove().catch(() => {});
  }

  /** Marks are for others to see; where none can be made, the append itself will say what is wrong. */
  async #placeMark(): Promise<void> {
    await this.#mark.put().catch(() => {});
    this.#marked = true;
  }

  /** Becomes the file's writer, unless it has one: the mark goes up first, so that of two who come at once none is missed. */
  async #claim(sessionId: string): Promise<void> {
    await this.#mark.put();
    this.#marked = true;
    const other = await this.#mark.findOther();
    if (other === null) return;
    await this.#mark.remove();
    this.#marked = false;
    if (this.#options.ifInUse === "refuse") throw new SessionBusyError(sessionId, other);
    this.#readOnly = true;
  }

  /**
   * Writes what is in memory and these drafts as one new file. The append is rehearsed on a fork, so that memory is as it
   * was when the write fails and the append can be tried again.
   */
  async #persist(
    sessionId: string,
    memory: SessionStore,
    drafts: readonly EntryDraft[],
    options: AppendOptions | undefined,
  ): Promise<AppendResult> {
    const { header } = (await memory.head(sessionId)) as SessionHead;
    const rehearsal = await memory.fork(sessionId, { ...header, id: uuidv7() });
    try {
      const { entries } = await memory.append(rehearsal.header.id, drafts, options);
      const log: Entry[] = [];
      for await (const entry of memory.read(rehearsal.header.id)) log.push(entry);
      const head = await this.#files.create(header, { entries: log });
      this.#memory = null;
      return { version: head.version, entries, head };
    } finally {
      await memory.delete(rehearsal.header.id);
      await memory.purge("9999-12-31T00:00:00.000Z");
    }
  }

  #inTurn<T>(task: () => Promise<T>): Promise<T> {
    this.#inLine++;
    const turn = this.#last.then(task).finally(() => this.#inLine--);
    this.#last = turn.catch(() => {});
    return turn;
  }
}

/** The store of a directory's session files, opened as the options say. */
export function openFiles(directory: string, options: FileOptions): Promise<JsonlStore> {
  const { durability, readOnly, salvage } = options;
  return openSessionFiles({
    directory,
    ...(durability === undefined ? {} : { durability }),
    ...(readOnly === undefined ? {} : { readOnly }),
    ...(salvage === undefined ? {} : { salvage }),
  });
}

function isWorthAFile(entries: readonly EntryDraft[] | readonly Entry[], persistFrom: PersistFrom): boolean {
  if (persistFrom === "create") return true;
  return entries.some(
    (entry) => entry?.type === "message" && (persistFrom === "message" || entry.message?.role === "assistant"),
  );
}
