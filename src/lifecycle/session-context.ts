import { checkArgument, isObject } from "../session/check-arguments.ts";
import { AsyncLocalStorage } from "node:async_hooks";
import { SessionError } from "../session/errors.ts";
import type { SessionState } from "../session/state/state.ts";
import type { SessionManager } from "./session-manager.ts";

/** The result of `bind`, to be passed to `unbind`. */
export interface ContextToken {
  /** The id of the bound session. */
  readonly sessionId: string;
}

/** The binding of a request to its session, for middleware. */
export interface RequestBinding {
  /** Runs a part of the request with its session bound; can be called several times. */
  run<T>(work: () => T): T;
  /** The session of the request; created if it does not exist yet, once for all callers. */
  getOrCreate(): Promise<SessionState>;
  /** Ends the binding, also for code that is still running. */
  end(): void;
}

/** The session of one request, if it is bound or being created. */
interface Slot extends ContextToken {
  state: SessionState | null;
  creating: Promise<SessionState> | null;
  /** Creates the session; null if `getOrCreate` creates it for the user it is given. */
  readonly create: (() => Promise<SessionState>) | null;
  bound: boolean;
  /** The enclosing slot, in force again when this one ends. */
  readonly outer: Slot | null;
}

/**
 * The current request's session, available anywhere in its code through an async context.
 *
 * - Each request has its own session, invisible to concurrent requests.
 * - Background code that a request started sees the session as long as it is bound.
 */
export class SessionContext {
  readonly #slots = new AsyncLocalStorage<Slot | null>();
  readonly #manager: SessionManager;

  /** `manager` creates the sessions of `getOrCreate`. */
  constructor(manager: SessionManager) {
    checkArgument(typeof manager?.create === "function", manager, "SessionContext", "a manager");
    this.#manager = manager;
  }

  /** Runs code with a session bound; null for code that creates one on first use, with `getOrCreate`. Prefer this to `bind`. */
  run<T>(state: SessionState | null, work: () => T): T {
    checkArgument(typeof work === "function", work, "run", "a function to run in the context of the session");
    return this.#slots.run(this.#slotOf(state), work);
  }

  /** Binds a session for the rest of the current async execution. For code that cannot be wrapped in `run`. */
  bind(state: SessionState): ContextToken {
    const slot = this.#slotOf(state);
    this.#slots.enterWith(slot);
    return slot;
  }

  /**
   * Starts the binding of a request to its session, or to one that `create` makes on first use; `getOrCreate` then ignores its
   * user.
   */
  begin(state: SessionState | null, create: () => Promise<SessionState>): RequestBinding {
    const slot = this.#slotOf(state, create);
    return {
      run: (work) => this.#slots.run(slot, work),
      getOrCreate: () => fill(slot, create),
      end: () => {
        slot.bound = false;
      },
    };
  }

  /** Ends a binding: the previous one is in force again, also for code that is still running. */
  unbind(token: ContextToken): void {
    checkArgument(isObject(token) && "bound" in token, token, "unbind", "what bind has returned");
    const slot = token as Slot;
    slot.bound = false;
    if (this.#slots.getStore() === slot) this.#slots.enterWith(this.#live());
  }

  /** The id of the bound session. @throws {SessionError} `NO_SESSION` if there is none. */
  get sessionId(): string {
    return this.state.sessionId;
  }

  /** The state of the bound session at the time of the binding. @throws {SessionError} `NO_SESSION` if there is none. */
  get state(): SessionState {
    const state = this.#live()?.state ?? null;
    if (state !== null) return state;
    throw new SessionError("NO_SESSION", "No session is bound here; wrap the request in SessionContext.run.");
  }

  /**
   * The bound session, or else a new one for the user. Inside `run(null, …)` the new one is bound, so that a request creates only
   * one session.
   */
  async getOrCreate(userId: string): Promise<SessionState> {
    const slot = this.#live();
    const create = slot?.create ?? (() => this.#manager.create({ userId }));
    return slot === null ? create() : fill(slot, create);
  }

  #slotOf(state: SessionState | null, create: Slot["create"] = null): Slot {
    return { sessionId: state?.sessionId ?? "", state, creating: null, create, bound: true, outer: this.#live() };
  }

  /** The innermost slot that is still bound. Async code that inherited a slot can outlive its request. */
  #live(): Slot | null {
    let slot = this.#slots.getStore() ?? null;
    while (slot !== null && !slot.bound) slot = slot.outer;
    return slot;
  }
}

/** The binding of a request without a context. */
export function requestBinding(state: SessionState | null, create: () => Promise<SessionState>): RequestBinding {
  const slot = { state, creating: null };
  return { run: (work) => work(), getOrCreate: () => fill(slot, create), end: () => undefined };
}

async function fill(
  slot: Pick<Slot, "state" | "creating">,
  create: () => Promise<SessionState>,
): Promise<SessionState> {
  if (slot.state !== null) return slot.state;
  slot.creating ??= create();
  try {
    slot.state = await slot.creating;
    return slot.state;
  } finally {
    slot.creating = null;
  }
}
