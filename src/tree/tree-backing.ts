import { defined } from "../internal/defined.ts";
import { checkDistinctCalls } from "../session/log/distinct-calls.ts";
import type { Entry, EntryDraft } from "../session/log/entry.ts";
import { SessionError, show } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { SessionHeader } from "../session/log/header.ts";
import type { AppendOptions, AppendResult, Guard, SessionStore } from "../session/store.ts";
import type { Damage } from "../stores/jsonl/index.ts";
import type { FileOptions, StoreTreeOptions } from "./file-options.ts";

/** How many more turns a session may have, and its limit. */
export interface SessionRoom {
  readonly left: number;
  readonly limit: number;
}

/** The storage of a tree's session, and of sessions that are derived from it. */
export interface TreeBacking {
  readonly store: SessionStore;
  /** The path of the session's file, even if it is not written yet; null without a file. */
  readonly path: string | null;
  readonly damage: readonly Damage[];
  readonly persisted: boolean;
  append(sessionId: string, drafts: readonly EntryDraft[], options?: AppendOptions): Promise<AppendResult>;
  /** How many more turns the session may have; null without a limit. */
  roomIn(head: SessionHead): SessionRoom | null;
  /** Writes a session that is only in memory to its file. Resolves to the new head, or to null if nothing was written. */
  flush(sessionId: string): Promise<SessionHead | null>;
  /** Creates a session with these entries in the same kind of storage. */
  derive(header: SessionHeader, entries: readonly Entry[], options: FileOptions): Promise<OpenedSession>;
  close(): Promise<void>;
}

/** A session and its storage. */
export interface OpenedSession {
  readonly backing: TreeBacking;
  readonly head: SessionHead;
}

/** A session of a store that the caller has opened and closes. */
export class StoreBacking implements TreeBacking {
  readonly store: SessionStore;
  readonly path = null;
  readonly damage: readonly Damage[] = [];
  readonly #options: Pick<StoreTreeOptions, "guard" | "by" | "onAppend">;
  #version: number;

  /** `version` is the session's version when it was opened. */
  constructor(store: SessionStore, options: Pick<StoreTreeOptions, "guard" | "by" | "onAppend"> = {}, version = 0) {
    this.store = store;
    this.#options = options;
    this.#version = version;
  }

  get persisted(): boolean {
    return this.store.capabilities.durable;
  }

  roomIn({ path }: SessionHead): SessionRoom | null {
    const limit = this.#options.guard?.maxTurns;
    return limit === undefined ? null : { left: Math.max(0, limit - path.turnCount), limit };
  }

  append(sessionId: string, drafts: readonly EntryDraft[], options?: AppendOptions): Promise<AppendResult> {
    if (this.#isUsers(options)) {
      try {
        checkDistinctCalls(drafts);
        this.#checkAuthor(drafts, options);
      } catch (error) {
        return Promise.reject(error);
      }
    }
    const appending = this.store.append(sessionId, drafts, this.#optionsOf(drafts, options));
    const { onAppend } = this.#options;
    return onAppend === undefined ? appending : this.#notify(appending, onAppend);
  }

  async #notify(
    appending: Promise<AppendResult>,
    onAppend: NonNullable<StoreTreeOptions["onAppend"]>,
  ): Promise<AppendResult> {
    const known = this.#version;
    const result = await appending;
    this.#version = Math.max(this.#version, result.version);
    // Entries that this tree already knew come from a retry, and are not new.
    await onAppend({ ...result, entries: result.entries.filter(({ seq }) => seq >= known) });
    return result;
  }

  /** @throws {SessionError} `INVALID_OPTION` if an entry names another author than the user for whom the tree was opened. */
  #checkAuthor(drafts: readonly EntryDraft[], options: AppendOptions | undefined): void {
    const { by } = this.#options;
    const names = [options?.by, ...(Array.isArray(drafts) ? drafts.map((draft) => draft?.by) : [])];
    const forged = names.find((name) => name !== undefined && name !== by);
    if (forged === undefined) return;
    throw new SessionError(
      "INVALID_OPTION",
      `The session was opened for user ${show(by)}, so an entry by ${show(forged)} is refused; leave out by.`,
    );
  }

  #optionsOf(drafts: readonly EntryDraft[], options: AppendOptions | undefined): AppendOptions | undefined {
    const { guard, by } = this.#options;
    const isByUser = this.#isUsers(options);
    if (guard === undefined && !isByUser) return options;
    const guarded = guard === undefined ? options : { ...options, guard: guardOf(guard, drafts, options) };
    return isByUser ? { ...defined({ by }), ...guarded } : guarded;
  }

  /**
   * Whether an append is made by the user and not by a run. A run under the session's lease writes its input with the author
   * of the recorded request.
   */
  #isUsers(options: AppendOptions | undefined): boolean {
    return this.#options.by !== undefined && options?.guard?.leaseToken === undefined;
  }

  async flush(): Promise<null> {
    return null;
  }

  async derive(header: SessionHeader, entries: readonly Entry[]): Promise<OpenedSession> {
    const head = await this.store.create(header, { entries });
    return { backing: new StoreBacking(this.store, this.#options, head.version), head };
  }

  async close(): Promise<void> {}
}

/**
 * The guard of one append. The end of a run is appended whatever the session's status: without it, a run whose session was
 * closed meanwhile would look crashed. An append's own limit of turns overrides that of the tree, so that a caller that has
 * checked the limit before is not refused afterwards.
 */
function guardOf(guard: Guard, drafts: readonly EntryDraft[], options: AppendOptions | undefined): Guard {
  const { status: _status, ...rest } = guard;
  const always = { ...rest, ...(options?.guard?.maxTurns === undefined ? {} : { maxTurns: options.guard.maxTurns }) };
  // The store refuses drafts that are none.
  const ends = Array.isArray(drafts) && drafts.every((draft) => draft?.type === "run" && draft.phase !== "started");
  return { ...options?.guard, ...(ends ? {} : guard), ...always };
}
