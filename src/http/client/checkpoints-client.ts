import type { Checkpoint } from "../../session/store.ts";
import type { CheckpointDiff, CheckpointList, NewCheckpoint, SessionView } from "../wire.ts";
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

  /** Marks where a session stands now. */
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

  /** Takes the session back to a checkpoint; nothing is erased. */
  async restore(checkpointId: string, options: CallOptions = {}): Promise<SessionView> {
    const path = pathOf`/api/checkpoints/${checkpointId}/restore`;
    return this.#transport.json({ method: "POST", path, json: {}, ...options });
  }

  /** What is different between two checkpoints of a session. */
  async diff(fromId: string, toId: string, options: CallOptions = {}): Promise<CheckpointDiff> {
    return this.#transport.json({ path: pathOf`/api/checkpoints/${fromId}/diff/${toId}`, ...options });
  }
}
