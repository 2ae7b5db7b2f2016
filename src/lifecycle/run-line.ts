import { followAbort } from "../agent/follow-abort.ts";
import { SessionBusyError } from "../session/errors.ts";

/** What a run does while another one has the session. */
export type IfBusy = "reject" | "enqueue" | "interrupt";

/** A run that wants a session. */
export interface Entrant {
  readonly runId: string;
  /** Stops it, in favour of another. */
  readonly interrupt: () => void;
  readonly ifBusy: IfBusy;
  /** How long it waits at most. */
  readonly waitMs: number;
  /** Aborts when it does not want the session any more. */
  readonly signal: AbortSignal;
}

interface Waiting {
  readonly entrant: Entrant;
  readonly admit: () => void;
}

interface Place {
  holder: Entrant;
  readonly waiting: Waiting[];
}

/** Lets the runs of this process have a session one after the other, in the order in which they asked. */
export class RunLine {
  readonly #places = new Map<string, Place>();
  /** The last one that asked for a session and is still being checked. */
  readonly #arrivals = new Map<string, Promise<void>>();

  /**
   * Resolves when the session is this run's; `leave` gives it to the next. Whoever does not pass the check never enters.
   * A store may answer a later check first, so each waits for those before it to be checked.
   *
   * @throws {SessionBusyError} when it is another's, and this one does not wait or has waited long enough.
   */
  async enter(sessionId: string, entrant: Entrant, check: () => Promise<void> = async () => {}): Promise<void> {
    const before = this.#arrivals.get(sessionId) ?? Promise.resolve();
    let arrive = (): void => {};
    const arriving = new Promise<void>((resolve) => {
      arrive = resolve;
    });
    this.#arrivals.set(sessionId, arriving);
    let entering: Promise<void>;
    try {
      await check();
      await before;
      entering = this.#enterChecked(sessionId, entrant);
    } finally {
      // The next one may enter once this one stands in the line, or is refused; but not before those before it.
      void before.then(() => {
        arrive();
        if (this.#arrivals.get(sessionId) === arriving) this.#arrivals.delete(sessionId);
      });
    }
    await entering;
  }

  async #enterChecked(sessionId: string, entrant: Entrant): Promise<void> {
    entrant.signal.throwIfAborted();
    const place = this.#places.get(sessionId);
    if (place === undefined) {
      this.#places.set(sessionId, { holder: entrant, waiting: [] });
      return;
    }
    if (entrant.ifBusy === "reject") throw busy(sessionId, place.holder);
    const admitted = waitIn(sessionId, place, entrant);
    if (entrant.ifBusy === "interrupt") place.holder.interrupt();
    await admitted;
  }

  /** Gives the session to the next run that waits for it. */
  leave(sessionId: string, entrant: Entrant): void {
    const place = this.#places.get(sessionId);
    if (place?.holder !== entrant) return;
    const next = place.waiting.shift();
    if (next === undefined) this.#places.delete(sessionId);
    else {
      place.holder = next.entrant;
      next.admit();
    }
  }
}

function waitIn(sessionId: string, place: Place, entrant: Entrant): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      unfollow();
      const index = place.waiting.indexOf(waiting);
      if (index !== -1) place.waiting.splice(index, 1);
      settle();
    };
    const waiting: Waiting = { entrant, admit: () => end(resolve) };
    // Whoever interrupts does not want to hear the end of what others wait for.
    if (entrant.ifBusy === "interrupt") place.waiting.unshift(waiting);
    else place.waiting.push(waiting);
    const timer = setTimeout(() => end(() => reject(busy(sessionId, place.holder))), entrant.waitMs);
    const unfollow = followAbort(entrant.signal, () => end(() => reject(entrant.signal.reason)));
  });
}

function busy(sessionId: string, { runId }: Entrant): SessionBusyError {
  return new SessionBusyError(sessionId, `run ${runId}`);
}
