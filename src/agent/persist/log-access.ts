import { SessionError } from "../../session/errors.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import type { Payer } from "../../session/payer.ts";
import type { AppendOptions, Guard, SessionStore } from "../../session/store.ts";
import type { RowInit } from "../../session/value/transcript.ts";
import type { RunFile } from "../../tree/run-file.ts";
import type { SessionRoom } from "../../tree/tree-backing.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import type { LeaseHold } from "./lease-hold.ts";
import { LogFollower, type RunMessage } from "./log-follower.ts";

/** The result of an append to a run's log. */
export interface LogAppended {
  /** The entry for each draft. */
  readonly entries: readonly Entry[];
  /** The leaf after the append. */
  readonly head: Pick<SessionHead, "leafId">;
  /** The version of the log after the append; absent if no one else can append. */
  readonly version?: number;
}

/**
 * The log of a session for the run that holds it.
 *
 * - `append` resolves once its entries are durable, and rejects with nothing written.
 * - Between `acquire` and `release`, no other run appends.
 */
export interface LogAccess {
  /** The stored session; null if the run is not stored. */
  readonly sessionId: string | null;
  readonly store: SessionStore | null;
  /** Whether later sessions can build on the rows by reference. */
  readonly shared: boolean;
  /** Whether the run can release its session while it waits for answers. */
  readonly parks: boolean;
  /** Whether input that others append is placed before the run's next row. */
  readonly takesOthers: boolean;
  /** The parts of the header that the fold of the run and the key of its prompt cache use. */
  readonly header: Pick<SessionHeader, "id" | "inherited" | "forkedFrom" | "rootId" | "userId">;
  /** The guard of every append, from `acquire` on. */
  readonly guard: Guard;
  /** The lease that the run holds; null if it holds its log in another way. */
  readonly lease: LeaseHold | null;
  /** How many more turns the session accepts; null for any number. */
  readonly room: SessionRoom | null;
  /** The payer of the run; absent or null if it has none, or if the enclosing run has the payer. */
  readonly payer?: Payer | null;
  append(drafts: readonly EntryDraft[], options: AppendOptions): Promise<LogAppended>;
  head(): Promise<SessionHead>;
  /** Excludes other runs. @throws {SessionBusyError} while another run has the session. */
  acquire(): Promise<void>;
  /** Releases the session after its end was recorded; with null, without an end, as after a crash. */
  release(phase: "finished" | "failed" | "cancelled" | null): Promise<void>;
  /** Follows the log from a position on; null if no one else can append. */
  follow(from: number, onEntry: (entry: Entry) => void): LogFollower | null;
  /** Passes on input of others to the run, for a log that is not followed. */
  messages?(onMessage: (message: RunMessage) => void): LogFollower;
  /** For a log that is not followed: the rows of the context if it was edited since the last call; otherwise null. */
  editedRows?(): readonly RowInit[] | null;
  /** Whether anyone has subscribed to the events of the enclosing run, such as a group's; null if there is none. */
  isFollowed(): boolean | null;
}

/** Options for accessing a session of a store. */
export interface StoreAccessInit {
  readonly store: SessionStore;
  readonly sessionId: string;
  readonly append: (drafts: readonly EntryDraft[], options: AppendOptions) => ReturnType<SessionStore["append"]>;
  readonly head: () => Promise<SessionHead>;
  readonly acquire: () => Promise<LeaseHold>;
  readonly room?: () => SessionRoom | null;
  readonly payer?: Payer | null;
}

/** A session of a store, held by its lease. */
export class StoreAccess implements LogAccess {
  readonly shared = true;
  readonly parks = true;
  readonly takesOthers = true;
  readonly store: SessionStore;
  readonly sessionId: string;
  /** The append of the store or the tree itself. */
  readonly append: StoreAccessInit["append"];
  readonly #init: StoreAccessInit;
  #lease: LeaseHold | null = null;
  #header: LogAccess["header"];

  constructor(init: StoreAccessInit) {
    this.#init = init;
    this.store = init.store;
    this.sessionId = init.sessionId;
    this.append = init.append;
    this.#header = { id: init.sessionId, forkedFrom: null, userId: null };
  }

  get header(): LogAccess["header"] {
    return this.#header;
  }

  get payer(): Payer | null {
    return this.#init.payer ?? null;
  }

  get guard(): Guard {
    return this.#lease?.guard ?? {};
  }

  get lease(): LeaseHold | null {
    return this.#lease;
  }

  get room(): SessionRoom | null {
    return this.#init.room?.() ?? null;
  }

  async head(): Promise<SessionHead> {
    const head = await this.#init.head();
    this.#header = head.header;
    return head;
  }

  async acquire(): Promise<void> {
    this.#lease = await this.#init.acquire();
  }

  async release(): Promise<void> {
    await this.#lease?.letGo();
  }

  follow(from: number, onEntry: (entry: Entry) => void): LogFollower {
    return new LogFollower(this.store, this.sessionId, from, onEntry);
  }

  isFollowed(): null {
    return null;
  }
}

/** The file of one run, which gets its final name when the run has finished. */
export class FileAccess implements LogAccess {
  readonly shared = false;
  readonly parks = true;
  readonly takesOthers = true;
  readonly guard: Guard = { holds: true };
  readonly lease = null;
  readonly room = null;
  readonly #file: RunFile;
  #header: LogAccess["header"];

  constructor(file: RunFile) {
    this.#file = file;
    this.#header = { id: file.sessionId, forkedFrom: null, userId: null };
  }

  get header(): LogAccess["header"] {
    return this.#header;
  }

  get store(): SessionStore {
    return this.#file.store;
  }

  get sessionId(): string {
    return this.#file.sessionId;
  }

  append(drafts: readonly EntryDraft[], options: AppendOptions): Promise<LogAppended> {
    return this.#file.append(drafts, options);
  }

  async head(): Promise<SessionHead> {
    const head = await this.#file.head();
    this.#header = head.header;
    return head;
  }

  /** Opening the file already excluded other runs. */
  async acquire(): Promise<void> {}

  release(phase: "finished" | "failed" | "cancelled" | null): Promise<void> {
    return phase === "finished" ? this.#file.finish() : this.#file.release();
  }

  follow(from: number, onEntry: (entry: Entry) => void): LogFollower {
    return new LogFollower(this.store, this.sessionId, from, onEntry);
  }

  isFollowed(): null {
    return null;
  }
}

/** The log of a run that is not stored: entries get an id and a position, and are not written anywhere. */
export class UnstoredAccess implements LogAccess {
  readonly sessionId = null;
  readonly store = null;
  readonly shared = false;
  readonly parks = false;
  readonly takesOthers = false;
  readonly guard: Guard = {};
  readonly lease = null;
  readonly room = null;
  readonly header: LogAccess["header"];
  #leafId: string | null;
  #version = 0;

  constructor(id: string, leafId: string | null) {
    this.header = { id, forkedFrom: null, userId: null };
    this.#leafId = leafId;
  }

  append(drafts: readonly EntryDraft[], { run }: AppendOptions): Promise<LogAppended> {
    const timestamp = new Date().toISOString();
    const entries = drafts.map((draft): Entry => {
      const id = draft.id ?? uuidv7();
      const stamp = { id, parentId: this.#leafId, timestamp, seq: this.#version++, run };
      // V8 adds fields to a spread copy forty times more slowly than with `Object.assign`.
      const entry = Object.assign({}, draft, stamp) as Entry;
      if (draft.type === "message" || draft.type === "compaction") this.#leafId = id;
      return entry;
    });
    return Promise.resolve({ entries, head: { leafId: this.#leafId } });
  }

  head(): Promise<never> {
    return Promise.reject(new SessionError("NO_SESSION", "The run is not stored, so it has no session in a store."));
  }

  async acquire(): Promise<void> {}

  async release(): Promise<void> {}

  follow(): null {
    return null;
  }

  isFollowed(): null {
    return null;
  }
}
