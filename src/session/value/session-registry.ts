import { checkArgument } from "../check-arguments.ts";
import type { Session } from "./session.ts";

type Held =
  | { readonly session: Session; readonly weak: null }
  | { readonly session: null; readonly weak: WeakRef<Session> };

/**
 * Finds sessions of this process by id.
 *
 * A session is held while an operation produces it. After that, it can be found for as long as other code refers to it.
 */
export class SessionRegistry {
  readonly #held = new Map<string, Held>();
  readonly #forget = new FinalizationRegistry<{ readonly id: string; readonly held: Held }>(({ id, held }) => {
    // The id may belong to another session by now: a recovered run's session has the id of its predecessor.
    if (this.#held.get(id) === held) this.#held.delete(id);
  });

  /** The number of known sessions, running and finished. */
  get size(): number {
    return this.#held.size;
  }

  /** Holds a session until it is finished. It replaces a session with the same id. */
  register(session: Session): void {
    checkArgument(typeof session?.id === "string", session, "register", "a session");
    this.#held.set(session.id, { session, weak: null });
  }

  /** Returns the session with an id, or undefined if it was never registered or was garbage collected. */
  get(id: string): Session | undefined {
    const held = this.#held.get(id);
    return held?.session ?? held?.weak?.deref();
  }

  /** The registered sessions that are not finished, in the order of registration. */
  active(): Session[] {
    return [...this.#held.values()].flatMap(({ session }) => (session === null ? [] : [session]));
  }

  /** Stops holding a session, so that it can be garbage collected; false if no session with this id is active. */
  finish(id: string): boolean {
    const session = this.#held.get(id)?.session ?? null;
    if (session === null) return false;
    const held: Held = { session: null, weak: new WeakRef(session) };
    this.#held.set(id, held);
    this.#forget.register(session, { id, held });
    return true;
  }
}

/** The registry of the process, in which runs register their sessions. */
export const sessionRegistry: SessionRegistry = new SessionRegistry();
