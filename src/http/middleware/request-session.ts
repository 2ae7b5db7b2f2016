import type { Agent } from "../../agent/agent.ts";
import type { SessionRun } from "../../agent/session-run.ts";
import type { ManagedRunOptions } from "../../lifecycle/runs/manage-run.ts";
import type { StateOptions } from "../../lifecycle/read-state.ts";
import type { SessionManager } from "../../lifecycle/session-manager.ts";
import type { TurnInput } from "../../lifecycle/turn-input.ts";
import { SessionNotFoundError } from "../../session/errors.ts";
import type { Content } from "../../session/message.ts";
import type { SessionState } from "../../session/state/state.ts";
import type { SessionTree } from "../../tree/session-tree.ts";

/** What the session of a request needs of whoever finds it. */
export interface SessionSource {
  readonly manager: SessionManager;
  /** Who calls. */
  readonly userId: string;
  /** Whether the request named no session that can be used. */
  readonly isNew: boolean;
  /** The id that the session has, or will have when it is made next. */
  readonly id: string;
  /** Whether there is a session, or one is being made. */
  readonly isMade: boolean;
  /** Makes the session unless it is there. */
  make(): Promise<SessionState>;
}

/**
 * The session of one request.
 *
 * - Nothing is stored before the first call of a method here; that call makes the session where there is none.
 * - The first call must come before the answer begins, so that the answer can name the session: later it is `NO_SESSION`.
 * - Every call is made on behalf of the caller. One that writes resumes a session that was suspended.
 */
export class RequestSession {
  /** Who calls; a visitor who is nobody's user has an id of their own, which begins with `anonymous:`. */
  readonly userId: string;
  /** Whether the request came without a session that can be used. */
  readonly isNew: boolean;
  readonly #source: SessionSource;

  /** Requests get theirs from the middleware. */
  constructor(source: SessionSource) {
    this.#source = source;
    this.userId = source.userId;
    this.isNew = source.isNew;
  }

  /** The session's id; null while there is no session yet. */
  get id(): string | null {
    return this.#source.isMade ? this.#source.id : null;
  }

  /** What the session adds up to now. Without turns, that costs the same whatever its length. */
  async state(options: StateOptions = {}): Promise<SessionState> {
    const { sessionId } = await this.#source.make();
    const state = await this.#source.manager.getState(sessionId, { ...options, actor: this.userId });
    if (state === null) throw new SessionNotFoundError(sessionId);
    return state;
  }

  /** Adds a turn. The same `turnId` with the same content is the same turn, so that a retry is safe. */
  async addTurn(turn: TurnInput): Promise<void> {
    await this.#source.manager.addTurn(await this.#ready(), turn, { actor: this.userId });
  }

  /** The session opened for reading, navigating and appending. */
  async tree(): Promise<SessionTree> {
    const { sessionId } = await this.#source.make();
    return this.#source.manager.open(sessionId, { actor: this.userId });
  }

  /** Runs the session through an agent. The run comes back at once; whatever keeps the session from it is how it fails. */
  run(agent: Agent, input: Content, options: Omit<ManagedRunOptions, "actor" | "before"> = {}): SessionRun {
    const { manager, id } = this.#source;
    let ready: Promise<unknown> | null = null;
    const before = (): Promise<unknown> => (ready ??= this.#ready());
    const run = manager.run(id, agent, input, { ...options, before, actor: this.userId });
    // Begun here and not when the run wants it, so that an answer which begins meanwhile names the session.
    before().catch(() => undefined);
    return run;
  }

  async #ready(): Promise<string> {
    const { sessionId, status } = await this.#source.make();
    if (status === "suspended") await this.#source.manager.open(sessionId, { actor: this.userId });
    return sessionId;
  }
}
