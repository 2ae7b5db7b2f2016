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

/** Which file a run writes, and what a new one begins with. */
export interface RunFileInit {
  readonly path?: string;
  /** Where the file is when no path says so (default: `defaultSessionDirectory()`). */
  readonly directory?: string;
  readonly durability?: "flush" | "fsync";
  readonly header: SessionHeader;
  readonly entries: readonly EntryDraft[];
  /** Whether to go on with another session that is in the file already; that of the header always is. */
  readonly accepts?: (store: SessionStore, head: SessionHead) => Promise<boolean>;
}

/**
 * The file of one session while one run writes it: in flight its name ends in `.__partial__`.
 *
 * One process at a time has it; that of a process which has died is free at once.
 */
export class RunFile {
  /** The file's name once the run has ended in good order. */
  readonly path: string;
  readonly sessionId: string;
  /** Whether the file was made here, with the entries it was to begin with. */
  readonly made: boolean;
  readonly #store: JsonlStore;
  readonly #mark: WriterMark;
  #inFlight: boolean;
  #left: Promise<void> | null = null;

  private constructor(init: {
    path: string;
    sessionId: string;
    made: boolean;
    store: JsonlStore;
    mark: WriterMark;
    inFlight: boolean;
  }) {
    this.path = init.path;
    this.sessionId = init.sessionId;
    this.made = init.made;
    this.#store = init.store;
    this.#mark = init.mark;
    this.#inFlight = init.inFlight;
  }

  /**
   * Makes the file, or goes on with the one that is there.
   *
   * @throws {SessionBusyError} while another run writes it.
   * @throws {SessionError} `SESSION_EXISTS` when the path holds another session.
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
      mark = new WriterMark(partialPathOf(path), { alone: true });
      const other = (await mark.put()) ?? (await mark.findOther());
      if (other !== null) throw new SessionBusyError(header.id, other);
      return new RunFile({ path, store, mark, ...(await openOrMake(store, path, init)) });
    } catch (error) {
      await mark?.remove().catch(() => {});
      await store.close();
      throw error;
    }
  }

  /** The file's name while the run goes on. */
  get partialPath(): string {
    return partialPathOf(this.path);
  }

  /** Reads the session while the file is open. */
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
    if (this.#left !== null) throw this.#ended();
    // A file that a run ended is in flight again with the first thing that is added to it, and not before.
    if (!this.#inFlight) await this.#store.setPartial(this.sessionId, true);
    this.#inFlight = true;
    return this.#store.append(this.sessionId, drafts, { ...options, guard: { ...options.guard, holds: true } });
  }

  /** Writes the trailer and gives the file its final name. When that fails, the file stays in flight. */
  async finish(): Promise<void> {
    if (this.#left !== null) throw this.#ended();
    if (this.#inFlight) {
      const head = await this.head();
      const { usage } = (await ownSpending(this.#store, head)) ?? head;
      const closedAt = new Date().toISOString();
      await this.#store.append(this.sessionId, [{ type: "trailer", closedAt, entryCount: head.version, usage }]);
      await this.#store.setPartial(this.sessionId, false);
      this.#inFlight = false;
    }
    await this.leave();
  }

  /** Lets go of the file as it is. */
  leave(): Promise<void> {
    this.#left ??= (async () => {
      await this.#store.close();
      await this.#mark.remove().catch(() => {});
    })();
    return this.#left;
  }

  #ended(): SessionError {
    return new SessionError("RUN_ENDED", `The writer of ${show(this.path)} is closed; open another one to go on.`);
  }
}

/** Whoever writes a session's file now, as a run or as a tree; null when nobody does. */
export async function findWriter(path: string): Promise<string | null> {
  return (await findRun(path)) ?? (await new WriterMark(finalPathOf(path)).findOther());
}

/** The run that writes a session's file now, or null. */
export function findRun(path: string): Promise<string | null> {
  return new WriterMark(partialPathOf(path)).findOther();
}

/** Whether there is a file of that name. */
export async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() === true;
}

async function openOrMake(
  store: JsonlStore,
  path: string,
  init: RunFileInit,
): Promise<{ readonly sessionId: string; readonly made: boolean; readonly inFlight: boolean }> {
  const partial = partialPathOf(path);
  const [final, inFlight] = [await isFile(path), await isFile(partial)];
  if (final && inFlight) {
    throw new SessionError("SESSION_EXISTS", `There are ${show(path)} and ${show(partial)}; move one of them away.`);
  }
  if (!final && !inFlight) {
    await store.createFile(partial, init.header, init.entries);
    return { sessionId: init.header.id, made: true, inFlight: true };
  }
  const sessionId = await store.openFile(final ? path : partial);
  const head = (await store.head(sessionId)) as SessionHead;
  if (sessionId !== init.header.id && (await init.accepts?.(store, head)) !== true) {
    throw new SessionError(
      "SESSION_EXISTS",
      `${show(path)} holds session ${sessionId}, not ${init.header.id}; choose another path.`,
    );
  }
  return { sessionId, made: false, inFlight };
}
