import { checkOptionsOf, checkStoreArgument, type KeysOf } from "../../session/check-arguments.ts";
import { defined } from "../../internal/defined.ts";
import type { JsonObject } from "../../internal/json.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { CheckpointNotFoundError, SessionError, SessionNotFoundError } from "../../session/errors.ts";
import { CHECKPOINT_METADATA_BYTES_MAX } from "../../session/limits.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import type { FileChanges, Sandbox } from "../../session/sandbox/sandbox.ts";
import { type SessionState, stateOf, frozenCopy } from "../../session/state/state.ts";
import type { Checkpoint, SessionStore } from "../../session/store.ts";
import { pathAt } from "../../tree/path-reader.ts";
import { checkCount } from "../../stores/complete/valid-arguments.ts";
import { restoreFiles, compareSnapshots, freeSnapshot, heldBackend, takeSnapshot } from "./held-snapshot.ts";
import { readTurns, type StateOptions } from "../read-state.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { listPages } from "../../stores/complete/list-pages.ts";
import { statusError } from "../../session/log/append-guard.ts";
import { type ActorOptions, byOf, viewerOf } from "../access.ts";
import type { ManagedSessions } from "../managed-sessions.ts";

const CHECKPOINTS_DEFAULT = 50;

/** Options of a `CheckpointManager`. */
export interface CheckpointManagerOptions {
  /** The most checkpoints of a session (default 50). */
  readonly maxPerSession?: number;
  readonly clock?: () => Date;
  /** Generates the ids of new checkpoints. */
  readonly ids?: () => string;
}

const OPTIONS: KeysOf<CheckpointManagerOptions> = { maxPerSession: true, clock: true, ids: true };

/** The contents of a new checkpoint. */
export interface CheckpointInit {
  readonly metadata?: JsonObject;
  /** The sandbox whose files it holds. */
  readonly sandbox?: Sandbox;
  /** A checkpoint that is not pruned, even if it is the oldest. */
  readonly spare?: string;
  /** The user who creates it (default: the program itself). */
  readonly by?: string;
  /** The session's head, if the caller has just read it; the checkpoint is made at this position. */
  readonly head?: SessionHead;
}

/** Options of a restore. */
export interface RestoreOptions extends StateOptions {
  /** The sandbox to which the checkpoint's files are restored; they stay unchanged if it holds none. */
  readonly sandbox?: Sandbox;
}

const INIT_KEYS: KeysOf<CheckpointInit> = { metadata: true, sandbox: true, spare: true, by: true, head: true };
const RESTORE_KEYS: KeysOf<RestoreOptions> = { turns: true, checkpoint: true, charactersMax: true, sandbox: true };

/**
 * Creates, lists, restores and prunes the checkpoints of sessions.
 *
 * - A checkpoint is a position in the log, so the cost of creating and restoring one does not depend on the session's length.
 * - A session keeps at most `maxPerSession`: the oldest are deleted first, by time and then by the order of creation. A
 *   checkpoint from which a live branch was forked is kept, and so is one whose files cannot be freed at the moment.
 * - Deleting a checkpoint frees its files.
 */
export class CheckpointManager {
  readonly #store: SessionStore;
  readonly #max: number;
  readonly #clock: () => Date;
  readonly #ids: () => string;

  constructor(store: SessionStore, options: CheckpointManagerOptions = {}) {
    checkStoreArgument(store, "CheckpointManager");
    checkOptionsOf(options, OPTIONS, "CheckpointManager");
    const { maxPerSession = CHECKPOINTS_DEFAULT, clock = () => new Date(), ids = uuidv7 } = options;
    checkCount(maxPerSession, "maxPerSession", 1);
    this.#store = store;
    this.#max = maxPerSession;
    this.#clock = clock;
    this.#ids = ids;
  }

  /**
   * Creates a checkpoint of a session's current position, with the files of a sandbox if one is given.
   *
   * @throws {SessionError} `TOO_LARGE` for metadata of more than 16 KiB.
   */
  async create(sessionId: string, init: CheckpointInit = {}): Promise<Checkpoint> {
    checkOptionsOf(init, INIT_KEYS, "create");
    const metadata = frozenCopy(init.metadata ?? {}, "metadata");
    checkSize(metadata);
    // The head is read before the snapshot: a conversation newer than its files would mention work that the files do not contain.
    const head = init.head ?? (await this.#store.head(sessionId));
    if (head?.header.id !== sessionId) throw new SessionNotFoundError(sessionId);
    const held = init.sandbox === undefined ? {} : { sandboxSnapshot: await takeSnapshot(init.sandbox) };
    try {
      return await this.#save(head, { metadata, ...defined({ by: init.by }), ...held }, init.spare ?? null);
    } catch (error) {
      await freeSnapshot(held).catch(() => {});
      throw error;
    }
  }

  /**
   * The state of the session at a checkpoint: its turns, variables and totals. Name, status and total spending are the session's
   * present ones. The log is not changed; the files of a given sandbox are replaced by those of the checkpoint.
   *
   * @throws {CheckpointNotFoundError} if there is no such checkpoint, or its session was deleted.
   */
  async restore(checkpointId: string, options: RestoreOptions = {}): Promise<SessionState> {
    checkOptionsOf(options, RESTORE_KEYS, "restore");
    const checkpoint = await this.#store.loadCheckpoint(checkpointId);
    const head = checkpoint === null ? null : await this.#store.head(checkpoint.sessionId);
    if (checkpoint === null || head === null) throw new CheckpointNotFoundError(checkpointId);
    const { sessionId, leafId, version } = checkpoint;
    const path = await pathAt(this.#store, head, leafId);
    const { turns: wanted, charactersMax } = options;
    const turns = wanted === false ? [] : await readTurns(this.#store, sessionId, leafId, charactersMax);
    const settings = await this.#store.settings(sessionId, path);
    const state = stateOf({ ...head, version }, settings, turns, { checkpointId: checkpoint.id, leafId, path });
    if (options.sandbox !== undefined) await restoreFiles(checkpoint, options.sandbox);
    return state;
  }

  /**
   * The files that differ between two checkpoints. Null if either holds none, or if they cannot be compared: they are of two
   * kinds of sandbox, of a kind that cannot compare, or deleted.
   *
   * @throws {CheckpointNotFoundError} if there is no checkpoint with one of these ids.
   */
  async compareFiles(fromId: string, toId: string): Promise<FileChanges | null> {
    return compareSnapshots(await this.#load(fromId), await this.#load(toId));
  }

  /** The checkpoints of a session, the oldest first. */
  async list(sessionId: string): Promise<readonly Checkpoint[]> {
    return this.#store.listCheckpoints(sessionId);
  }

  /**
   * Deletes a checkpoint and frees its files; false if there is none with that id. If the files cannot be freed, the call fails
   * and the checkpoint is kept.
   */
  async delete(checkpointId: string): Promise<boolean> {
    const checkpoint = await this.#store.loadCheckpoint(checkpointId);
    return checkpoint !== null && this.#remove(checkpoint);
  }

  /**
   * Deletes all checkpoints of a session, or only those with files. Returns the errors of those whose files could not be freed.
   */
  async deleteAll(sessionId: string, which: "all" | "with-files" = "all"): Promise<readonly unknown[]> {
    const failures: unknown[] = [];
    for (const checkpoint of await this.#store.listCheckpoints(sessionId)) {
      if (which === "with-files" && heldBackend(checkpoint) === null) continue;
      await this.#remove(checkpoint).catch((error: unknown) => failures.push(error));
    }
    return failures;
  }

  async #load(checkpointId: string): Promise<Checkpoint> {
    const checkpoint = await this.#store.loadCheckpoint(checkpointId);
    if (checkpoint === null) throw new CheckpointNotFoundError(checkpointId);
    return checkpoint;
  }

  async #remove(checkpoint: Checkpoint): Promise<boolean> {
    // The files are freed first: a failure between the two steps can be retried, while files without a checkpoint would never be
    // found.
    await freeSnapshot(checkpoint);
    return this.#store.deleteCheckpoint(checkpoint.id);
  }

  async #save(
    head: SessionHead,
    fields: Pick<Checkpoint, "metadata" | "by" | "sandboxSnapshot">,
    spare: string | null,
  ): Promise<Checkpoint> {
    const sessionId = head.header.id;
    const earlier = await this.#store.listCheckpoints(sessionId);
    const checkpoint: Checkpoint = frozenCopy({
      id: this.#ids(),
      sessionId,
      version: head.version,
      leafId: head.leafId,
      createdAt: this.#clock().toISOString(),
      parentCheckpointId: earlier.at(-1)?.id ?? null,
      ...fields,
    });
    await this.#store.saveCheckpoint(checkpoint);
    // A failure to prune old ones does not matter: the new one is stored, and the next call prunes again.
    await this.#prune(checkpoint, new Set(earlier.map(({ id }) => id)), spare).catch(() => {});
    return checkpoint;
  }

  async #prune({ id, sessionId }: Checkpoint, earlier: ReadonlySet<string>, spare: string | null): Promise<void> {
    // Listed after the new one is saved, so that of several concurrent calls the last one sees all checkpoints.
    const kept = await this.#store.listCheckpoints(sessionId);
    let excess = kept.length - this.#max;
    if (excess <= 0) return;
    const needed = new Set([...(await forkedCheckpoints(this.#store, sessionId)), spare]);
    let before = true;
    for (const checkpoint of kept) {
      if (excess <= 0) return;
      if (checkpoint.id === id) before = false;
      // A concurrently created, later checkpoint prunes for itself; otherwise two could delete each other.
      else if ((before || earlier.has(checkpoint.id)) && !needed.has(checkpoint.id)) {
        const freed = await this.#remove(checkpoint).then(
          () => true,
          () => false,
        );
        if (freed) excess--;
      }
    }
  }
}

const CHECKPOINT_EXTRA = "fork.checkpoint";

/** The lineage extra that names the checkpoint from which a fork was made. */
export function checkpointExtra(checkpointId: string): readonly [string, string] {
  return [CHECKPOINT_EXTRA, checkpointId];
}

/** The checkpoints of a session from which its live forks were made. */
async function forkedCheckpoints(store: SessionStore, sessionId: string): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for await (const { items } of listPages(store, { parentId: sessionId })) {
    for (const { header } of items) {
      const id = checkpointOf(header);
      if (id !== null) ids.add(id);
    }
  }
  return ids;
}

function checkpointOf({ lineage }: SessionHeader): string | null {
  const value = lineage.extras.find(([key]) => key === CHECKPOINT_EXTRA)?.[1];
  return typeof value === "string" ? value : null;
}

/** The parts of the manager that `restoreLeaf` needs. */
interface RestoreLeafParts {
  readonly store: SessionStore;
  readonly sessions: ManagedSessions;
  readonly checkpoints: CheckpointManager;
}

/** Moves a session's leaf to a checkpoint, and restores the files of a sandbox. Returns the new head. */
export async function restoreLeaf(
  { store, sessions, checkpoints }: RestoreLeafParts,
  checkpointId: string,
  options: ActorOptions & { readonly sandbox?: Sandbox },
): Promise<SessionHead> {
  viewerOf(options);
  const checkpoint = await store.loadCheckpoint(checkpointId);
  const found = checkpoint === null ? null : await sessions.find(checkpoint.sessionId, options);
  if (checkpoint === null || found === null) throw new CheckpointNotFoundError(checkpointId);
  const { status } = await sessions.expiry.expireIfDue(found);
  const { sessionId, leafId } = checkpoint;
  if (status !== "active") throw statusError(sessionId, status);
  const { sandbox } = options;
  // The files are restored first: if that fails, the leaf is not moved.
  if (sandbox !== undefined) await checkpoints.restore(checkpointId, { sandbox, turns: false });
  const draft = { type: "leaf", targetId: leafId } as const;
  return (await store.append(sessionId, [draft], { guard: { status: "active" }, ...byOf(options) })).head;
}

function checkSize(metadata: JsonObject): void {
  const bytes = Buffer.byteLength(JSON.stringify(metadata));
  if (bytes <= CHECKPOINT_METADATA_BYTES_MAX) return;
  throw new SessionError(
    "TOO_LARGE",
    `The metadata of the checkpoint has ${bytes} bytes, more than ${CHECKPOINT_METADATA_BYTES_MAX}; keep large data elsewhere and refer to it.`,
  );
}
