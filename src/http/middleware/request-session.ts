import type { Agent } from "../../agent/agent.ts";
import type { SessionRun } from "../../agent/session-run.ts";
import type { ManagedRunOptions } from "../../lifecycle/runs/manage-run.ts";
import type { StateOptions } from "../../lifecycle/read-state.ts";
import type { SessionManager } from "../../lifecycle/session-manager.ts";
import type { TurnInput } from "../../lifecycle/turn-input.ts";
import { SessionError, SessionNotFoundError } from "../../session/errors.ts";
import type { Content } from "../../session/message.ts";
import type { SessionState } from "../../session/state/state.ts";
import type { SessionTree } from "../../tree/session-tree.ts";

/** The parts of the middleware that a `RequestSession` uses. */
export interface SessionSource {
  readonly manager: SessionManager;
  /** The id of the caller. */
  readonly userId: string;
  /** Whether the request named no usable session. */
  readonly isNew: boolean;
  /** The session's id, or the id that it will get when it is created. */
  readonly id: string;
  /** Whether the session exists or is being created. */
  readonly isMade: boolean;
  /** Creates the session if it does not exist. */
  make(): Promise<SessionState>;
}

/**
 * The session of one request.
 *
 * - Nothing is stored before the first call of a method here; that call creates the session if it does not exist.
 * - The first call must come before the answer starts, so that the answer can name the session; later it fails with `NO_SESSION`.
 * - Every call is made on behalf of the caller. A call that writes resumes a suspended session.
 */
export class RequestSession {
  /** The id of the caller; an anonymous visitor has a generated id, which begins with `anonymous:`. */
  readonly userId: string;
  /** Whether the request came without a usable session. */
  readonly isNew: boolean;
  readonly #source: SessionSource;

  /** Called by the middleware only. */
  constructor(source: SessionSource) {
    this.#source = source;
    this.userId = source.userId;
    this.isNew = source.isNew;
  }

  /** The session's id; null before the session is created. */
  get id(): string | null {
    return this.#source.isMade ? this.#source.id : null;
  }

  /** The state of the session. Without turns, the cost does not depend on the session's length. */
  async state(options: StateOptions = {}): Promise<SessionState> {
    const { sessionId } = await this.#source.make();
    const state = await this.#source.manager.getState(sessionId, { ...options, actor: this.userId });
    if (state === null) throw new SessionNotFoundError(sessionId);
    return state;
  }

  /** Adds a turn. Idempotent: repeating the `turnId` with the same content returns the stored turn. */
  async addTurn(turn: TurnInput): Promise<void> {
    await this.#source.manager.addTurn(await this.#ready(), turn, { actor: this.userId });
  }

  /** The session opened for reading, navigating and appending. */
  async tree(): Promise<SessionTree> {
    const { sessionId } = await this.#source.make();
    return this.#source.manager.open(sessionId, { actor: this.userId });
  }

  /** Starts a run of the session by an agent, synchronously. If the session cannot be created or resumed, the run fails. */
  run(agent: Agent, input: Content, options: Omit<ManagedRunOptions, "actor" | "before"> = {}): SessionRun {
    const { manager, id } = this.#source;
    let ready: Promise<unknown> | null = null;
    const before = (): Promise<unknown> => (ready ??= this.#ready());
    const run = manager.run(id, agent, input, { ...options, before, actor: this.userId });
    // Started here and not when the run needs it, so that an answer that starts meanwhile names the session.
    before().catch(() => undefined);
    return run;
  }

  async #ready(): Promise<string> {
    const { sessionId, status } = await this.#source.make();
    if (status === "suspended") await this.#source.manager.open(sessionId, { actor: this.userId });
    return sessionId;
  }
}

/*
 * express-session does nothing for a request that already has a session. A field that a handler sets on this session, expecting
 * express-session to store it, would be silently lost, so setting an unknown field throws. The proxy is on the prototype chain, so
 * that known fields cost nothing.
 */
Object.setPrototypeOf(
  RequestSession.prototype,
  new Proxy(
    {},
    {
      set(_target, name) {
        throw new SessionError(
          "INVALID_OPTION",
          `A request's session stores turns and no fields, so ${String(name)} would be lost; if express-session uses request.session, give ours another name, as in { property: "chat" }.`,
        );
      },
    },
  ),
);
