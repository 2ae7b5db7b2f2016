import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import type { FindBlob } from "../../session/blob.ts";
import type { Entry } from "../../session/log/entry.ts";
import { SessionError, SessionNotFoundError, show } from "../../session/errors.ts";
import { inheritedUpTo, type SessionHead } from "../../session/log/fold.ts";
import type { Checkpoint, SessionStore } from "../../session/store.ts";
import { withData } from "../blobs/message-blobs.ts";
import { findErased, findErasedCheckpoints, hasTombstones, refuseErased } from "../tombstones.ts";
import { canonicalJson, digestOf, firstDifference, headerText, type LogDigest } from "../doctor/log-digest.ts";

/** Options of `copySession`. */
export interface CopySessionOptions {
  /** Called after every part that was written to the target. */
  readonly onProgress?: (progress: CopyProgress) => void;
  /** Stops the copy between two parts. The copied entries are kept, and the next copy continues after them. */
  readonly signal?: AbortSignal;
}

/** The progress of the copy of one session. */
export interface CopyProgress {
  readonly sessionId: string;
  /** How many entries the target has. */
  readonly version: number;
  /** How many entries the source had when it was last read. */
  readonly versionTotal: number;
}

/** The result of a copy, after the logs of source and target were compared. */
export interface CopiedSession {
  readonly sessionId: string;
  readonly version: number;
  /** The digest of both logs at this version. */
  readonly digest: string;
  /** How many entries were written. Entries that a fork shares with its source by reference do not count. */
  readonly appended: number;
  readonly checkpoints: number;
  /** Whether it was copied by forking its source session in the target. */
  readonly forked: boolean;
}

const BATCH_ENTRIES = 500;
const BATCH_CHARACTERS = 1024 * 1024;
const ROUNDS_MAX = 20;

/**
 * Copies a session to another store, with its ids, order, parents, times and checkpoints.
 *
 * - The target holds a prefix of the source's log at every moment, so a copy that was stopped or killed continues where it
 *   ended when it is started again.
 * - At the end both logs are read, and their digests must be equal.
 * - Entries that are appended to the source meanwhile are copied too, until there are no new ones.
 * - If the target has the session from which this one was forked, the copy is a fork of it; otherwise all entries are copied.
 * - The lease, and the time of the store's last append, belong to a store and are not copied.
 *
 * @throws {SessionError} `SESSION_NOT_FOUND`; `SESSION_EXISTS` or `CHECKPOINT_EXISTS` if the target holds something else
 * under the same id, which stays unchanged; `CONFLICT` if another process appends to the copy.
 */
export async function copySession(
  from: SessionStore,
  to: SessionStore,
  sessionId: string,
  options: CopySessionOptions = {},
): Promise<CopiedSession> {
  checkStoreArgument(from, "copySession");
  checkStoreArgument(to, "copySession");
  checkOptionsOf(options, { onProgress: true, signal: true } satisfies KeysOf<CopySessionOptions>, "copySession");
  if (from === to) throw new SessionError("INVALID_OPTION", "A session cannot be copied to the store that it is in.");
  return new SessionCopy(from, to, sessionId, options).run();
}

class SessionCopy {
  readonly #from: SessionStore;
  readonly #to: SessionStore;
  readonly #sessionId: string;
  readonly #options: CopySessionOptions;
  /** How many entries the target has; null if it does not have the session yet. */
  #version: number | null = null;
  #appended = 0;
  #forked = false;

  constructor(from: SessionStore, to: SessionStore, sessionId: string, options: CopySessionOptions) {
    this.#from = from;
    this.#to = to;
    this.#sessionId = sessionId;
    this.#options = options;
  }

  async run(): Promise<CopiedSession> {
    // Read the checkpoints before the head, so that the copied log contains their positions.
    let checkpoints = await this.#from.listCheckpoints(this.#sessionId);
    let head = await this.#sourceHead();
    await this.#refuseErased(head, checkpoints);
    await this.#checkFree(checkpoints);
    const existing = (await this.#to.head(this.#sessionId)) ?? (await this.#forkInTarget(head));
    if (existing !== null) await this.#continueFrom(head, existing);
    for (let round = 1; ; round++) {
      await this.#copyUpTo(head);
      await this.#copyCheckpoints(checkpoints);
      const later = await this.#from.listCheckpoints(this.#sessionId);
      const next = await this.#sourceHead();
      // Stop after some rounds even if the source still grows; the next copy continues.
      if (round === ROUNDS_MAX) break;
      if (next.version === head.version && canonicalJson(later) === canonicalJson(checkpoints)) break;
      [head, checkpoints] = [next, later];
    }
    return {
      sessionId: this.#sessionId,
      ...(await this.#readBack(head.version)),
      appended: this.#appended,
      checkpoints: checkpoints.length,
      forked: this.#forked,
    };
  }

  /** Refuses content that was erased from the target, so that the copy does not bring it back. */
  async #refuseErased({ header, version }: SessionHead, checkpoints: readonly Checkpoint[]): Promise<void> {
    await refuseErased(this.#to, header);
    if (!(await hasTombstones(this.#to))) return;
    const [erased] = await findErasedCheckpoints(this.#to, checkpoints, this.#from);
    if (erased !== undefined) throw this.#erased(`checkpoint ${show(erased)}`);
    for (let after = -1; after < version - 1; after += BATCH_ENTRIES) {
      const entries: Entry[] = [];
      const range = { after, before: Math.min(version, after + 1 + BATCH_ENTRIES) };
      for await (const entry of this.#from.read(this.#sessionId, range)) entries.push(entry);
      const [first] = await findErased(this.#to, entries, this.#from);
      if (first !== undefined) throw this.#erased(`entry ${show(first)}`);
    }
  }

  #erased(what: string): SessionError {
    return new SessionError(
      "ERASED",
      `Session ${this.#sessionId} holds ${what}, which was erased from the target; erase it from the source too, then copy again.`,
    );
  }

  async #sourceHead(): Promise<SessionHead> {
    const head = await this.#from.head(this.#sessionId);
    if (head === null) throw new SessionNotFoundError(this.#sessionId);
    return head;
  }

  /** Forks the session in the target from the same source. Null if the target does not have that source. */
  async #forkInTarget({ header }: SessionHead): Promise<SessionHead | null> {
    const { forkedFrom } = header;
    if (forkedFrom === null || !this.#to.capabilities.forkByReference) return null;
    const source = await this.#to.head(forkedFrom.sessionId);
    if (source === null || source.version < forkedFrom.version) return null;
    // A fork inherits what its source has from an import. If the source in the target differs in that, so would the fork.
    const { inherited } = inheritedUpTo(source.header, forkedFrom.version);
    if (canonicalJson(inherited ?? null) !== canonicalJson(header.inherited ?? null)) return null;
    // A session made from one branch of another has a fork point too, but does not begin with the other's first entries.
    const own = { store: this.#from, sessionId: this.#sessionId };
    const other = { store: this.#to, sessionId: forkedFrom.sessionId };
    let last: string | null = null;
    const difference = await firstDifference(own, other, forkedFrom.version, ({ id }) => {
      this.#options.signal?.throwIfAborted();
      last = id;
    });
    if (difference !== null || last !== forkedFrom.entryId) return null;
    const forked = await this.#make(() => this.#to.fork(forkedFrom.sessionId, header, { at: forkedFrom.entryId }));
    this.#forked = true;
    return forked;
  }

  /** Checks that the target holds a prefix of the source's log, and counts those entries as copied. */
  async #continueFrom(head: SessionHead, existing: SessionHead): Promise<void> {
    if (headerText(head.header) !== headerText(existing.header)) throw this.#differs("has another header");
    if (existing.version > head.version)
      throw this.#differs(`has ${existing.version} entries, and the source ${head.version}`);
    const own = { store: this.#from, sessionId: this.#sessionId };
    const other = { store: this.#to, sessionId: this.#sessionId };
    const position = await firstDifference(own, other, existing.version, () => this.#options.signal?.throwIfAborted());
    if (position !== null) throw this.#differs(`differs from the source at position ${position} of the log`);
    this.#version = existing.version;
  }

  async #copyUpTo({ header, version: versionTotal }: SessionHead): Promise<void> {
    let batch: Entry[] = [];
    let characters = 0;
    const flush = async (): Promise<void> => {
      this.#options.signal?.throwIfAborted();
      const start = this.#version;
      const findBlob: FindBlob = (blob) => this.#from.blob(this.#sessionId, blob);
      if (start === null) await this.#make(() => this.#to.create(header, { entries: batch, findBlob }));
      else await this.#to.append(this.#sessionId, batch, { expectedVersion: start, verbatim: true, findBlob });
      const version = (start ?? 0) + batch.length;
      this.#version = version;
      this.#appended += batch.length;
      batch = [];
      characters = 0;
      this.#options.onProgress?.({ sessionId: this.#sessionId, version, versionTotal });
    };
    const after = (this.#version ?? 0) - 1;
    for await (const entry of this.#from.read(this.#sessionId, { after, before: versionTotal })) {
      const place = { store: this.#from, sessionId: this.#sessionId };
      const copied = this.#to.capabilities.blobs === true ? entry : await withData(entry, place);
      batch.push(copied);
      characters += JSON.stringify(copied).length;
      if (batch.length >= BATCH_ENTRIES || characters >= BATCH_CHARACTERS) await flush();
    }
    if (batch.length > 0 || this.#version === null) await flush();
  }

  async #readBack(version: number): Promise<LogDigest> {
    const { signal } = this.#options;
    const options = { version, ...(signal === undefined ? {} : { signal }) };
    const source = await digestOf(this.#from, this.#sessionId, options);
    // Fewer entries than the head has: the source was deleted while it was read.
    if (source?.version !== version) throw new SessionNotFoundError(this.#sessionId);
    const target = await digestOf(this.#to, this.#sessionId, options);
    if (target?.digest === source.digest) return target;
    throw new SessionError(
      "STORE_FAILED",
      `Session ${this.#sessionId} reads differently in the target than in the source after the copy; do not use the copy, and check both stores.`,
    );
  }

  /** Refuses, before anything is written, if the target has another checkpoint under the same id. */
  async #checkFree(checkpoints: readonly Checkpoint[]): Promise<void> {
    for (const checkpoint of checkpoints) {
      const stored = await this.#to.loadCheckpoint(checkpoint.id);
      if (stored !== null && canonicalJson(stored) !== canonicalJson(checkpoint)) {
        throw new SessionError(
          "CHECKPOINT_EXISTS",
          `The target already has another checkpoint ${show(checkpoint.id)}, so session ${this.#sessionId} was not copied; delete it there first.`,
        );
      }
    }
  }

  async #copyCheckpoints(wanted: readonly Checkpoint[]): Promise<void> {
    for (const checkpoint of wanted) await this.#to.saveCheckpoint(checkpoint);
    const ids = new Set(wanted.map(({ id }) => id));
    const stored = (await this.#to.listCheckpoints(this.#sessionId)).filter(({ id }) => ids.has(id));
    if (canonicalJson(stored) === canonicalJson(wanted)) return;
    throw new SessionError(
      "STORE_FAILED",
      `The checkpoints of session ${this.#sessionId} read differently in the target than in the source; check both stores.`,
    );
  }

  async #make(make: () => Promise<SessionHead>): Promise<SessionHead> {
    try {
      return await make();
    } catch (error) {
      if (!(error instanceof SessionError) || error.code !== "SESSION_EXISTS") throw error;
      throw this.#differs("is deleted, or was created just now; undelete or purge it", error);
    }
  }

  #differs(how: string, cause?: unknown): SessionError {
    return new SessionError(
      "SESSION_EXISTS",
      `The target already has a session ${this.#sessionId}, which ${how}; nothing was changed.`,
      cause === undefined ? undefined : { cause },
    );
  }
}
