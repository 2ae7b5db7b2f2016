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
import { bringBackFiles, compareHeld, freeSnapshot, heldBackend, holdSnapshot } from "./held-snapshot.ts";
import { readTurns, type StateOptions } from "../read-state.ts";
import type { SessionHeader } from "../../session/log/header.ts";
import { listPages } from "../../stores/complete/list-pages.ts";
import { statusError } from "../../session/log/append-guard.ts";
import { type ActorOptions, byOf, viewerOf } from "../access.ts";
import type { ManagedSessions } from "../managed-sessions.ts";

const CHECKPOINTS_DEFAULT = 50;

/** How checkpoints are kept. */
export interface CheckpointManagerOptions {
  /** How many checkpoints a session keeps (default 50). */
  readonly maxPerSession?: number;
  readonly clock?: () => Date;
  /** Makes the ids of new checkpoints. */
  readonly ids?: () => string;
}

const OPTIONS: KeysOf<CheckpointManagerOptions> = { maxPerSession: true, clock: true, ids: true };

/** What a new checkpoint says and holds. */
export interface CheckpointInit {
  readonly metadata?: JsonObject;
  /** The sandbox whose files it is to hold. */
  readonly sandbox?: Sandbox;
  /** A checkpoint that stays, even if it is the oldest of too many. */
  readonly spare?: string;
  /** The user who makes it; left out, it is the program itself. */
  readonly by?: string;
  /** Where the session stands, for a caller that has just read or appended; the checkpoint is taken there. */
  readonly head?: SessionHead;
}

/** How a checkpoint is restored. */
export interface RestoreOptions extends StateOptions {
  /** The sandbox whose files are to be those of the checkpoint; they stay as they are if it holds none. */
  readonly sandbox?: Sandbox;
}

/**
 * Makes, lists, restores and prunes the checkpoints of sessions.
 *
 * - A checkpoint is a position in the log, so that making and restoring one costs the same however long the session is.
 * - A session keeps at most `maxPerSession`: the oldest go, by time and then by the order in which they were made. One that
 *   a live branch was forked from stays, and so does one whose files cannot be freed now.
 * - A checkpoint that goes takes the files along that it holds.
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
   * Remembers where a session stands now, with the files of a sandbox if one is given.
   *
   * @throws {SessionError} `TOO_LARGE` for metadata of more than 16 KiB.
   */
  async create(sessionId: string, init: CheckpointInit = {}): Promise<Checkpoint> {
    const metadata = frozenCopy(init.metadata ?? {}, "metadata");
    checkSize(metadata);
    // Before the files are kept: a conversation that runs ahead of its files would speak of work that is not there.
    const head = init.head ?? (await this.#store.head(sessionId));
    if (head?.header.id !== sessionId) throw new SessionNotFoundError(sessionId);
    const held = init.sandbox === undefined ? {} : { sandboxSnapshot: await holdSnapshot(init.sandbox) };
    try {
      return await this.#save(head, { metadata, ...defined({ by: init.by }), ...held }, init.spare ?? null);
    } catch (error) {
      await freeSnapshot(held).catch(() => {});
      throw error;
    }
  }

  /**
   * The state that the session had at a checkpoint: its turns, its variables and what they add up to. Name and status, and
   * what was ever spent, are the session's present ones. The log stays as it is; the files of a sandbox that is given become
   * those of the checkpoint.
   *
   * @throws {CheckpointNotFoundError} when there is none of that id, or its session was deleted.
   */
  async restore(checkpointId: string, options: RestoreOptions = {}): Promise<SessionState> {
    const checkpoint = await this.#store.loadCheckpoint(checkpointId);
    const head = checkpoint === null ? null : await this.#store.head(checkpoint.sessionId);
    if (checkpoint === null || head === null) throw new CheckpointNotFoundError(checkpointId);
    const { sessionId, leafId, version } = checkpoint;
    const path = await pathAt(this.#store, head, leafId);
    const { turns: wanted, charactersMax } = options;
    const turns = wanted === false ? [] : await readTurns(this.#store, sessionId, leafId, charactersMax);
    const settings = await this.#store.settings(sessionId, path);
    const state = stateOf({ ...head, version }, settings, turns, { checkpointId: checkpoint.id, leafId, path });
    if (options.sandbox !== undefined) await bringBackFiles(checkpoint, options.sandbox);
    return state;
  }

  /**
   * The files that two checkpoints hold differently. Null where either holds none, and where nobody here can compare them:
   * files of two kinds of sandbox, of a kind that cannot, or files that are gone.
   *
   * @throws {CheckpointNotFoundError} when there is none of one of these ids.
   */
  async compareFiles(fromId: string, toId: string): Promise<FileChanges | null> {
    return compareHeld(await this.#load(fromId), await this.#load(toId));
  }

  /** The checkpoints of a session, the oldest first. */
  async list(sessionId: string): Promise<readonly Checkpoint[]> {
    return this.#store.listCheckpoints(sessionId);
  }

  /**
   * Removes a checkpoint and frees the files that it holds; false when there is none of that id. When they cannot be freed,
   * that is how the call fails, and the checkpoint stays.
   */
  async delete(checkpointId: string): Promise<boolean> {
    const checkpoint = await this.#store.loadCheckpoint(checkpointId);
    return checkpoint !== null && this.#remove(checkpoint);
  }

  /** Removes all checkpoints of a session, or those that hold files; what kept some from being freed. */
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
    // The files go first: what fails between the two can be done again, while nobody would find files left behind.
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
    // The new one is there, whatever becomes of the old ones; the next one tries again.
    await this.#prune(checkpoint, new Set(earlier.map(({ id }) => id)), spare).catch(() => {});
    return checkpoint;
  }

  async #prune({ id, sessionId }: Checkpoint, earlier: ReadonlySet<string>, spare: string | null): Promise<void> {
    // Looked at after the new one is there, so that of several made at once the last to look sees them all.
    const kept = await this.#store.listCheckpoints(sessionId);
    let excess = kept.length - this.#max;
    if (excess <= 0) return;
    const needed = new Set([...(await forkedCheckpoints(this.#store, sessionId)), spare]);
    let before = true;
    for (const checkpoint of kept) {
      if (excess <= 0) return;
      if (checkpoint.id === id) before = false;
      // One that was made at the same time and comes later prunes for itself; else two could remove each other.
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

/** What a fork's lineage says about the checkpoint that it was made from. */
export function checkpointExtra(checkpointId: string): readonly [string, string] {
  return [CHECKPOINT_EXTRA, checkpointId];
}

/** The checkpoints of a session that its live forks were made from. */
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

/** What going back needs of its manager. */
interface GoBackParts {
  readonly store: SessionStore;
  readonly sessions: ManagedSessions;
  readonly checkpoints: CheckpointManager;
}

/** Moves a session's leaf to where a checkpoint stands, and gives a sandbox its files back; the head afterwards. */
export async function goBack(
  { store, sessions, checkpoints }: GoBackParts,
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
  // The files first: when they cannot be brought back, the conversation stays where it is, too.
  if (sandbox !== undefined) await checkpoints.restore(checkpointId, { sandbox, turns: false });
  const draft = { type: "leaf", targetId: leafId } as const;
  return (await store.append(sessionId, [draft], { guard: { status: "active" }, ...byOf(options) })).head;
}

function checkSize(metadata: JsonObject): void {
  const bytes = Buffer.byteLength(JSON.stringify(metadata));
  if (bytes <= CHECKPOINT_METADATA_BYTES_MAX) return;
  throw new SessionError(
    "TOO_LARGE",
    `The metadata of the checkpoint takes ${bytes} bytes, and may take ${CHECKPOINT_METADATA_BYTES_MAX}; keep large data elsewhere and refer to it.`,
  );
}
