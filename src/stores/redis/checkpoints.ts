import { uuidv7 } from "../../internal/uuid.ts";
import { SessionBusyError, SessionNotFoundError, show } from "../../session/errors.ts";
import type { Checkpoint } from "../../session/store.ts";
import type { CheckpointTable } from "../../session/store-driver.ts";
import { checkCheckpointId, oldestFirst } from "../complete/valid-checkpoint.ts";
import { DROP_CHECKPOINT, POINT_CHECKPOINT } from "./index-scripts.ts";
import type { RedisHandle } from "./redis-handle.ts";
import type { RedisPort } from "./redis-port.ts";
import { PUT_CHECKPOINT, READ_ALL, REPLACE_CHECKPOINT } from "./session-scripts.ts";
import type { StoredSession } from "./stored-session.ts";

const ATTEMPTS_MAX = 20;

/** Where a checkpoint is stored: its session (id and uid), and its token within the session. */
interface Pointer {
  readonly id: string;
  readonly uid: string;
  readonly token: string;
}

/**
 * The checkpoints of all sessions. Each is stored with its session, and a pointer from its id leads there. A checkpoint is
 * written first and exists only once the pointer to it is set. So of two processes that save the same id, only one
 * succeeds, and a process that dies in between leaves nothing visible.
 */
export class Checkpoints implements CheckpointTable {
  readonly #handle: RedisHandle;
  readonly #port: RedisPort;

  constructor(port: RedisPort) {
    this.#handle = port.handle;
    this.#port = port;
  }

  async save(checkpoint: Checkpoint): Promise<void> {
    const { id, sessionId } = checkpoint;
    const session = await this.#port.load(sessionId);
    if (session === null) throw new SessionNotFoundError(sessionId);
    const { uid } = session.stamp;
    const pointer = { id: sessionId, uid, token: uuidv7() };
    const args = [uid, pointer.token, JSON.stringify(checkpoint)];
    if ((await this.#handle.run(PUT_CHECKPOINT, this.#handle.names.all(sessionId, uid), args))[0] !== "ok")
      throw new SessionNotFoundError(sessionId);
    const stored = await this.#claim(id, pointer);
    if (stored === null) return;
    await this.#remove(pointer);
    checkCheckpointId(stored, checkpoint);
  }

  async load(id: string): Promise<Checkpoint | null> {
    const pointer = await this.#pointerOf(id);
    return pointer === null ? null : this.#read(await this.#port.load(pointer.id), pointer.token);
  }

  async list(sessionId: string, deleted: boolean): Promise<Checkpoint[]> {
    const session = await this.#port.load(sessionId, deleted);
    if (session === null) return [];
    const key = this.#handle.names.checkpoints(sessionId, session.stamp.uid);
    const list = (await this.#handle.run(READ_ALL, [key], [])) as [token: string, text: string][];
    const kept: { checkpoint: Checkpoint; sequence: number; token: string }[] = [];
    for (const [token, text] of list) {
      if (token === SEQUENCE) continue;
      const [sequence, body] = JSON.parse(text) as [number, string];
      kept.push({ checkpoint: JSON.parse(body) as Checkpoint, sequence, token });
    }
    const pointers = await this.#pointers(kept.map(({ checkpoint }) => checkpoint.id));
    const counted = kept.filter(({ token }, i) => pointers[i]?.endsWith(` ${token}`) === true);
    return oldestFirst(counted.sort((a, b) => a.sequence - b.sequence).map(({ checkpoint }) => checkpoint));
  }

  /** Overwrites a stored checkpoint. Returns false if its id is not stored or its session is deleted. */
  async replace(checkpoint: Checkpoint): Promise<boolean> {
    const pointer = await this.#pointerOf(checkpoint.id);
    const session = pointer === null ? null : await this.#port.load(pointer.id);
    if (pointer === null || session === null) return false;
    const key = this.#handle.names.checkpoints(pointer.id, session.stamp.uid);
    const [kind] = await this.#handle.run(REPLACE_CHECKPOINT, [key], [pointer.token, JSON.stringify(checkpoint)]);
    return kind === "ok";
  }

  async delete(id: string): Promise<boolean> {
    const pointer = await this.#pointerOf(id);
    const session = pointer === null ? null : await this.#port.load(pointer.id);
    if (pointer === null || session === null) return false;
    const existed = (await this.#read(session, pointer.token)) !== null;
    const [dropped] = await this.#handle.run(DROP_CHECKPOINT, this.#pointerKeys(pointer), [id, textOf(pointer)]);
    await this.#remove({ ...pointer, uid: session.stamp.uid });
    return existed && dropped === 1;
  }

  /** Points an id to a checkpoint. Returns null, or the checkpoint that the id already points to. */
  async #claim(id: string, pointer: Pointer): Promise<Checkpoint | null> {
    let old = "";
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const args = [id, old, textOf(pointer)];
      const [now, done] = (await this.#handle.run(POINT_CHECKPOINT, this.#pointerKeys(pointer), args)) as string[];
      if (done === "ok" || now === textOf(pointer)) return null;
      const other = pointerOf(now ?? "");
      const stored = now ? await this.#read(await this.#port.loadAny(other.id), other.token) : null;
      if (stored !== null) return stored;
      // The id points to a purged session, a deleted checkpoint or nothing, so it can be pointed here.
      old = now ?? "";
    }
    throw new SessionBusyError(pointer.id, `others that save a checkpoint ${show(id)}`);
  }

  async #pointers(ids: readonly string[]): Promise<readonly (string | null)[]> {
    return ids.length === 0 ? [] : this.#handle.command("HMGET", this.#handle.names.index("checkpoints"), ...ids);
  }

  async #pointerOf(id: string): Promise<Pointer | null> {
    const [text] = await this.#pointers([id]);
    return typeof text === "string" ? pointerOf(text) : null;
  }

  /** Reads with the current uid of the session: pointers can have an earlier uid if the log was replaced by an erasure. */
  async #read(session: StoredSession | null, token: string): Promise<Checkpoint | null> {
    if (session === null) return null;
    const key = this.#handle.names.checkpoints(session.head.header.id, session.stamp.uid);
    const text = await this.#handle.command<string | null>("HGET", key, token);
    return text === null ? null : (JSON.parse((JSON.parse(text) as [number, string])[1]) as Checkpoint);
  }

  async #remove({ id, uid, token }: Pointer): Promise<void> {
    await this.#handle.command("HDEL", this.#handle.names.checkpoints(id, uid), token);
  }

  #pointerKeys({ id }: Pointer): string[] {
    return [this.#handle.names.index("checkpoints"), this.#handle.names.index("checkpoints-of", id)];
  }
}

/** The hash field with the sequence number of the last checkpoint. Tokens are UUIDs, so none equals it. */
const SEQUENCE = "#";

function textOf({ id, uid, token }: Pointer): string {
  return `${id} ${uid} ${token}`;
}

function pointerOf(text: string): Pointer {
  const [id = "", uid = "", token = ""] = text.split(" ");
  return { id, uid, token };
}
