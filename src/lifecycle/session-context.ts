import { AsyncLocalStorage } from "node:async_hooks";
import { SessionError } from "../session/errors.ts";
import type { SessionState } from "../session/state/state.ts";
import type { SessionManager } from "./session-manager.ts";

/** What `bind` gives and `unbind` takes. */
export interface ContextToken {
  /** The session that was bound. */
  readonly sessionId: string;
}

/** A request whose session is bound by whoever wraps requests, from its beginning to its end. */
export interface RequestBinding {
  /** Runs a part of the request, as often as it has parts. */
  run<T>(work: () => T): T;
  /** The session of the request, made now where there is none yet; one for all who ask. */
  getOrCreate(): Promise<SessionState>;
  /** Ends the binding, also for code that still runs. */
  end(): void;
}

/** Where the session of one request stands. */
interface Slot extends ContextToken {
  state: SessionState | null;
  creating: Promise<SessionState> | null;
  /** How its session is made, where that is not for `getOrCreate` to say. */
  readonly create: (() => Promise<SessionState>) | null;
  bound: boolean;
  /** The slot that this one hides. */
  readonly outer: Slot | null;
}

/**
 * The session of the request that the present code belongs to, wherever that code stands.
 *
 * - Each request has its own: nothing that runs at the same time sees it.
 * - Code that a request started, and that outlives it, sees the session for as long as it is bound.
 */
export class SessionContext {
  readonly #slots = new AsyncLocalStorage<Slot | null>();
  readonly #manager: SessionManager;

  /** `manager` is what `getOrCreate` makes sessions with. */
  constructor(manager: SessionManager) {
    this.#manager = manager;
  }

  /** Runs code with a session; null for code that makes one on first use, with `getOrCreate`. Prefer this to `bind`. */
  run<T>(state: SessionState | null, work: () => T): T {
    return this.#slots.run(this.#slotOf(state), work);
  }

  /** Binds a session from here on, for what this request does next. Meant for where code cannot be wrapped in `run`. */
  bind(state: SessionState): ContextToken {
    const slot = this.#slotOf(state);
    this.#slots.enterWith(slot);
    return slot;
  }

  /** A request that has a session, or makes one with `create` on first use, whoever `getOrCreate` names. */
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

  /** Ends a binding: what was bound before it counts again, also for code that still runs. */
  unbind(token: ContextToken): void {
    const slot = token as Slot;
    slot.bound = false;
    if (this.#slots.getStore() === slot) this.#slots.enterWith(this.#live());
  }

  /** The id of the bound session. @throws {SessionError} `NO_SESSION` when there is none. */
  get sessionId(): string {
    return this.state.sessionId;
  }

  /** The bound session, as it was when it was bound. @throws {SessionError} `NO_SESSION` when there is none. */
  get state(): SessionState {
    const state = this.#live()?.state ?? null;
    if (state !== null) return state;
    throw new SessionError("NO_SESSION", "No session is bound here; wrap the request in SessionContext.run.");
  }

  /**
   * The bound session, else a new one of that user. Inside `run(null, …)` the new one is bound, so that a request makes
   * one session however often it asks.
   */
  async getOrCreate(userId: string): Promise<SessionState> {
    const slot = this.#live();
    const create = slot?.create ?? (() => this.#manager.create({ userId }));
    return slot === null ? create() : fill(slot, create);
  }

  #slotOf(state: SessionState | null, create: Slot["create"] = null): Slot {
    return { sessionId: state?.sessionId ?? "", state, creating: null, create, bound: true, outer: this.#live() };
  }

  /** The innermost slot that is still bound. A slot outlives its request in whatever inherited it. */
  #live(): Slot | null {
    let slot = this.#slots.getStore() ?? null;
    while (slot !== null && !slot.bound) slot = slot.outer;
    return slot;
  }
}

/** A request whose session nothing but the request itself leads to, as no context binds it. */
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
