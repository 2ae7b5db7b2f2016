import type { Checkpoint } from "../../session/store.ts";
import type { CheckpointTimeline } from "../tree-wire.ts";
import type { CheckpointDiff, CheckpointList, NewCheckpoint, RestoredSession, RestoreRequest } from "../wire.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** Checkpoints of sessions. */
export class CheckpointsClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** The checkpoints of a session, oldest first. */
  async list(sessionId: string, options: CallOptions = {}): Promise<readonly Checkpoint[]> {
    const path = pathOf`/api/sessions/${sessionId}/checkpoints`;
    return (await this.#transport.json<CheckpointList>({ path, ...options })).items;
  }

  /** The latest `limit` checkpoints of a session (default 100), the latest first, each with its node in the tree. */
  async timeline(sessionId: string, given?: { readonly limit?: number } & CallOptions): Promise<CheckpointTimeline> {
    const { signal, ...query } = given ?? {};
    const options = signal === undefined ? {} : { signal };
    return this.#transport.json({ path: pathOf`/api/sessions/${sessionId}/timeline`, query, ...options });
  }

  /** Makes a checkpoint of the session's current position; with `files`, it also holds the files of the session's place. */
  async create(sessionId: string, init: NewCheckpoint = {}, options: CallOptions = {}): Promise<Checkpoint> {
    const path = pathOf`/api/sessions/${sessionId}/checkpoints`;
    return this.#transport.json({ method: "POST", path, json: init, ...options });
  }

  async get(checkpointId: string, options: CallOptions = {}): Promise<Checkpoint> {
    return this.#transport.json({ path: pathOf`/api/checkpoints/${checkpointId}`, ...options });
  }

  async delete(checkpointId: string, options: CallOptions = {}): Promise<void> {
    await this.#transport.empty({ method: "DELETE", path: pathOf`/api/checkpoints/${checkpointId}`, ...options });
  }

  /** Moves the session back to a checkpoint, with `files` also its files; no entry is deleted. */
  async restore(checkpointId: string, given?: RestoreRequest & CallOptions): Promise<RestoredSession> {
    const { signal, ...request } = given ?? {};
    const path = pathOf`/api/checkpoints/${checkpointId}/restore`;
    const options = signal === undefined ? {} : { signal };
    return this.#transport.json({ method: "POST", path, json: request, ...options });
  }

  /** The differences between two checkpoints of a session; `files: false` leaves out their files, which is faster. */
  async diff(
    fromId: string,
    toId: string,
    given?: CallOptions & { readonly files?: boolean },
  ): Promise<CheckpointDiff> {
    const { signal, ...query } = given ?? {};
    const options = signal === undefined ? {} : { signal };
    return this.#transport.json({ path: pathOf`/api/checkpoints/${fromId}/diff/${toId}`, query, ...options });
  }
}
