import { checkArgument } from "../check-arguments.ts";
import type { Session } from "./session.ts";

type Held =
  | { readonly session: Session; readonly weak: null }
  | { readonly session: null; readonly weak: WeakRef<Session> };

/**
 * Finds sessions of this process by id.
 *
 * A session is kept while something makes it. Once it is finished it is found for as long as anyone else keeps it, and
 * forgotten after that.
 */
export class SessionRegistry {
  readonly #held = new Map<string, Held>();
  readonly #forget = new FinalizationRegistry<{ readonly id: string; readonly held: Held }>(({ id, held }) => {
    // The id may stand for another session by now: one of a recovered run has the id of the one before.
    if (this.#held.get(id) === held) this.#held.delete(id);
  });

  /** How many sessions it knows, running and finished. */
  get size(): number {
    return this.#held.size;
  }

  /** Keeps a session until it is finished. One that has the id of another replaces it. */
  register(session: Session): void {
    checkArgument(typeof session?.id === "string", session, "register", "a session");
    this.#held.set(session.id, { session, weak: null });
  }

  /** The session of an id, or undefined when it was never registered or is forgotten. */
  get(id: string): Session | undefined {
    const held = this.#held.get(id);
    return held?.session ?? held?.weak?.deref();
  }

  /** The sessions that are registered and not finished, in the order in which they were registered. */
  active(): Session[] {
    return [...this.#held.values()].flatMap(({ session }) => (session === null ? [] : [session]));
  }

  /** Lets go of a session, so that it can be forgotten; false when none of that id is active. */
  finish(id: string): boolean {
    const session = this.#held.get(id)?.session ?? null;
    if (session === null) return false;
    const held: Held = { session: null, weak: new WeakRef(session) };
    this.#held.set(id, held);
    this.#forget.register(session, { id, held });
    return true;
  }
}

/** The registry of the whole process, which runs enter their sessions in. */
export const sessionRegistry: SessionRegistry = new SessionRegistry();
