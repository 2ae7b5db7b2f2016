import type { Checkpoint } from "../../session/store.ts";
import type { CheckpointTimeline } from "../tree-wire.ts";
import type { CheckpointDiff, CheckpointList, NewCheckpoint, RestoredSession, RestoreRequest } from "../wire.ts";
import { type CallOptions, pathOf, type Transport } from "./transport.ts";

/** Positions of sessions that can be returned to. */
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

  /** The latest checkpoints of a session, the latest first, at most so many (default 100), each with where it stands. */
  async timeline(
    sessionId: string,
    { signal, ...query }: { readonly limit?: number } & CallOptions = {},
  ): Promise<CheckpointTimeline> {
    const options = signal === undefined ? {} : { signal };
    return this.#transport.json({ path: pathOf`/api/sessions/${sessionId}/timeline`, query, ...options });
  }

  /** Marks where a session stands now, with `files` together with the files of its place. */
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

  /** Takes the session back to a checkpoint, with `files` together with the files that it holds; nothing is erased. */
  async restore(
    checkpointId: string,
    { signal, ...request }: RestoreRequest & CallOptions = {},
  ): Promise<RestoredSession> {
    const path = pathOf`/api/checkpoints/${checkpointId}/restore`;
    const options = signal === undefined ? {} : { signal };
    return this.#transport.json({ method: "POST", path, json: request, ...options });
  }

  /** What is different between two checkpoints of a session; with `files: false`, without their files, which is quicker. */
  async diff(
    fromId: string,
    toId: string,
    { signal, ...query }: CallOptions & { readonly files?: boolean } = {},
  ): Promise<CheckpointDiff> {
    const options = signal === undefined ? {} : { signal };
    return this.#transport.json({ path: pathOf`/api/checkpoints/${fromId}/diff/${toId}`, query, ...options });
  }
}
