import { stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Entry, EntryDraft } from "../session/log/entry.ts";
import { SessionBusyError, SessionError, show } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { SessionHeader } from "../session/log/header.ts";
import type { AppendOptions, AppendResult, ReadOptions, SessionStore } from "../session/store.ts";
import type { JsonlStore } from "../stores/jsonl/index.ts";
import { finalPathOf, partialPathOf, sessionFileName } from "../stores/jsonl/file-names.ts";
import { makeParent } from "../stores/named-path.ts";
import { openSessionFiles } from "./open-session-files.ts";
import { defaultSessionDirectory } from "./home.ts";
import { ownSpending } from "./own-spending.ts";
import { WriterMark } from "./writer-mark.ts";

/** Options of `RunFile.open`: the file, and the content of a new one. */
export interface RunFileInit {
  readonly path?: string;
  /** The directory of the file if no path is given (default: `defaultSessionDirectory()`). */
  readonly directory?: string;
  readonly durability?: "flush" | "fsync";
  readonly header: SessionHeader;
  readonly entries: readonly EntryDraft[];
  /** Decides whether to continue another session that the file holds. The session of the header is always continued. */
  readonly accepts?: (store: SessionStore, head: SessionHead) => Promise<boolean>;
}

/**
 * The file of one session while a run writes it. Until the run has ended, its name ends in `.__partial__`.
 *
 * Only one process at a time can write it. If that process dies, another one can immediately.
 */
export class RunFile {
  /** The path of the file after the run has ended normally. */
  readonly path: string;
  readonly sessionId: string;
  /** Whether `open` created the file. */
  readonly created: boolean;
  readonly #store: JsonlStore;
  readonly #mark: WriterMark;
  #isPartial: boolean;
  #released: Promise<void> | null = null;

  private constructor(init: {
    path: string;
    sessionId: string;
    created: boolean;
    store: JsonlStore;
    mark: WriterMark;
    isPartial: boolean;
  }) {
    this.path = init.path;
    this.sessionId = init.sessionId;
    this.created = init.created;
    this.#store = init.store;
    this.#mark = init.mark;
    this.#isPartial = init.isPartial;
  }

  /**
   * Creates the file, or continues the existing one.
   *
   * @throws {SessionBusyError} while another run writes it.
   * @throws {SessionError} `SESSION_EXISTS` if the file holds another session.
   */
  static async open(init: RunFileInit): Promise<RunFile> {
    const given = init.path === undefined ? null : finalPathOf(resolve(init.path));
    const directory = given === null ? resolve(init.directory ?? defaultSessionDirectory()) : dirname(given);
    const { durability = "flush", header } = init;
    if (given !== null) await makeParent(given, { what: "the session's file" });
    const store = await openSessionFiles({ directory, durability });
    let mark: WriterMark | null = null;
    try {
      const known = given === null ? await store.pathOf(header.id) : null;
      const path = given ?? finalPathOf(known ?? join(directory, sessionFileName(header)));
      mark = new WriterMark(partialPathOf(path), { exclusive: true });
      const other = (await mark.create()) ?? (await mark.findOther());
      if (other !== null) throw new SessionBusyError(header.id, other);
      return new RunFile({ path, store, mark, ...(await openOrCreate(store, path, init)) });
    } catch (error) {
      await mark?.remove().catch(() => {});
      await store.close();
      throw error;
    }
  }

  /** The path of the file until the run has ended. */
  get partialPath(): string {
    return partialPathOf(this.path);
  }

  /** The store of the file, while the file is open. */
  get store(): SessionStore {
    return this.#store;
  }

  async head(): Promise<SessionHead> {
    return (await this.#store.head(this.sessionId)) as SessionHead;
  }

  read(options: ReadOptions): AsyncIterable<Entry> {
    return this.#store.read(this.sessionId, options);
  }

  async append(drafts: readonly EntryDraft[], options: AppendOptions): Promise<AppendResult> {
    if (this.#released !== null) throw this.#ended();
    // A finished file becomes partial again with the first append to it, and not when it is opened.
    if (!this.#isPartial) await this.#store.setPartial(this.sessionId, true);
    this.#isPartial = true;
    return this.#store.append(this.sessionId, drafts, { ...options, guard: { ...options.guard, holds: true } });
  }

  /** Writes the trailer and renames the file to its final name. If that fails, the file stays partial. */
  async finish(): Promise<void> {
    if (this.#released !== null) throw this.#ended();
    if (this.#isPartial) {
      const head = await this.head();
      const { usage } = (await ownSpending(this.#store, head)) ?? head;
      const closedAt = new Date().toISOString();
      await this.#store.append(this.sessionId, [{ type: "trailer", closedAt, entryCount: head.version, usage }]);
      await this.#store.setPartial(this.sessionId, false);
      this.#isPartial = false;
    }
    await this.release();
  }

  /** Closes the file without finishing it. */
  release(): Promise<void> {
    this.#released ??= (async () => {
      await this.#store.close();
      await this.#mark.remove().catch(() => {});
    })();
    return this.#released;
  }

  #ended(): SessionError {
    return new SessionError("RUN_ENDED", `The writer of ${show(this.path)} is closed; open another one to continue.`);
  }
}

/** The run or tree that writes to a session's file now, or null. */
export async function findWriter(path: string): Promise<string | null> {
  return (await findRun(path)) ?? (await new WriterMark(finalPathOf(path)).findOther());
}

/** The run that writes to a session's file now, or null. */
export function findRun(path: string): Promise<string | null> {
  return new WriterMark(partialPathOf(path)).findOther();
}

/** Whether a path is an existing file. */
export async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() === true;
}

async function openOrCreate(
  store: JsonlStore,
  path: string,
  init: RunFileInit,
): Promise<{ readonly sessionId: string; readonly created: boolean; readonly isPartial: boolean }> {
  const partial = partialPathOf(path);
  const [final, isPartial] = [await isFile(path), await isFile(partial)];
  if (final && isPartial) {
    throw new SessionError("SESSION_EXISTS", `Both ${show(path)} and ${show(partial)} exist; move one of them away.`);
  }
  if (!final && !isPartial) {
    await store.createFile(partial, init.header, init.entries);
    return { sessionId: init.header.id, created: true, isPartial: true };
  }
  const sessionId = await store.openFile(final ? path : partial);
  const head = (await store.head(sessionId)) as SessionHead;
  if (sessionId !== init.header.id && (await init.accepts?.(store, head)) !== true) {
    throw new SessionError(
      "SESSION_EXISTS",
      `${show(path)} holds session ${sessionId}, not ${init.header.id}; choose another path.`,
    );
  }
  return { sessionId, created: false, isPartial };
}
