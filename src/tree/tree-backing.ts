import { defined } from "../internal/defined.ts";
import { checkDistinctCalls } from "../session/log/distinct-calls.ts";
import type { Entry, EntryDraft } from "../session/log/entry.ts";
import { SessionError, show } from "../session/errors.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { SessionHeader } from "../session/log/header.ts";
import type { AppendOptions, AppendResult, Guard, SessionStore } from "../session/store.ts";
import type { Damage } from "../stores/jsonl/index.ts";
import type { FileOptions, StoreTreeOptions } from "./file-options.ts";

/** How many more turns a session takes, of how many. */
export interface SessionRoom {
  readonly left: number;
  readonly limit: number;
}

/** Where a tree's session is kept, and where one derived from it goes. */
export interface TreeBacking {
  readonly store: SessionStore;
  /** The session's file, or where it will be. */
  readonly path: string | null;
  readonly damage: readonly Damage[];
  readonly persisted: boolean;
  append(sessionId: string, drafts: readonly EntryDraft[], options?: AppendOptions): Promise<AppendResult>;
  /** How much room the session has; null where its turns are not limited. */
  roomIn(head: SessionHead): SessionRoom | null;
  /** Writes what still waits in memory; the head afterwards, or null when nothing waited. */
  flush(sessionId: string): Promise<SessionHead | null>;
  /** Makes a session with these entries in the same kind of store. */
  derive(header: SessionHeader, entries: readonly Entry[], options: FileOptions): Promise<OpenedSession>;
  close(): Promise<void>;
}

/** A session and where it is kept. */
export interface OpenedSession {
  readonly backing: TreeBacking;
  readonly head: SessionHead;
}

/** A session of a store that someone else opened and closes. */
export class StoreBacking implements TreeBacking {
  readonly store: SessionStore;
  readonly path = null;
  readonly damage: readonly Damage[] = [];
  readonly #options: Pick<StoreTreeOptions, "guard" | "by" | "onAppend">;
  #version: number;

  /** `version` is the session's when it was opened. */
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
    return onAppend === undefined ? appending : this.#tell(appending, onAppend);
  }

  async #tell(
    appending: Promise<AppendResult>,
    onAppend: NonNullable<StoreTreeOptions["onAppend"]>,
  ): Promise<AppendResult> {
    const known = this.#version;
    const result = await appending;
    this.#version = Math.max(this.#version, result.version);
    // An entry that this tree has known of before is a repetition.
    await onAppend({ ...result, entries: result.entries.filter(({ seq }) => seq >= known) });
    return result;
  }

  /** @throws {SessionError} `INVALID_OPTION` for another name than that of the user on whose behalf the tree was opened. */
  #checkAuthor(drafts: readonly EntryDraft[], options: AppendOptions | undefined): void {
    const { by } = this.#options;
    const names = [options?.by, ...(Array.isArray(drafts) ? drafts.map((draft) => draft?.by) : [])];
    const forged = names.find((name) => name !== undefined && name !== by);
    if (forged === undefined) return;
    throw new SessionError(
      "INVALID_OPTION",
      `The session was opened for user ${show(by)}, so it takes nothing by ${show(forged)}; leave out by.`,
    );
  }

  #optionsOf(drafts: readonly EntryDraft[], options: AppendOptions | undefined): AppendOptions | undefined {
    const { guard, by } = this.#options;
    const stamps = this.#isUsers(options);
    if (guard === undefined && !stamps) return options;
    const guarded = guard === undefined ? options : { ...options, guard: guardOf(guard, drafts, options) };
    return stamps ? { ...defined({ by }), ...guarded } : guarded;
  }

  /**
   * Whether an append is a user's, and not that of a run: whoever has the session's lease writes the input of a run with
   * the name that the request on record has.
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
 * The guard of one append. Without its end, a run whose session was closed meanwhile would look like one that died. A limit
 * of turns that the append brings along goes before the session's: who has looked for room before is not refused after.
 */
function guardOf(guard: Guard, drafts: readonly EntryDraft[], options: AppendOptions | undefined): Guard {
  const { status: _status, ...rest } = guard;
  const always = { ...rest, ...(options?.guard?.maxTurns === undefined ? {} : { maxTurns: options.guard.maxTurns }) };
  const ends = drafts.every((draft) => draft.type === "run" && draft.phase !== "started");
  return { ...options?.guard, ...(ends ? {} : guard), ...always };
}
