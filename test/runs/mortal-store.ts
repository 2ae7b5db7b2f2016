import type { Lease, SessionStore } from "../../src/session/store.ts";

/** The view that one process has of a store, until the process dies. */
export interface MortalStore {
  readonly store: SessionStore;
  /** Aborted when the process dies. */
  readonly death: AbortSignal;
  /** Resolves when the process freezes. */
  readonly frozen: Promise<void>;
  /** Whether a process that froze was able to append after it had lost its leases. */
  readonly appendedLate: boolean;
  /** Lets a frozen process continue: its interrupted append goes on. */
  thaw(): void;
}

/**
 * The fate of a process with its next append: it dies, and the store has that append or not; it freezes before that append
 * until its leases have ended; or null if it lives on.
 */
export type Fate = "append lost" | "append stored" | "frozen" | null;

/** The failures that are injected into the appends of a process. */
export interface MortalInit {
  /** Called for each append. */
  readonly fate: () => Fate;
  /** Called before and after each append, while the process lives. */
  readonly boundary: () => Promise<void>;
}

/**
 * A process on a store, which dies with one of its appends as with `kill -9`: the append has no answer, nothing else reaches the
 * store, and the leases of the process end. A process that freezes loses its leases, too, but tries that append when it thaws.
 */
export function mortalStore(store: SessionStore, { fate, boundary }: MortalInit): MortalStore {
  const ending = new AbortController();
  const death = ending.signal;
  const leases = new Set<Lease>();
  let [freeze, thaw] = [(): void => {}, (): void => {}];
  const frozen = new Promise<void>((resolve) => {
    freeze = resolve;
  });
  const thawed = new Promise<void>((resolve) => {
    thaw = resolve;
  });
  let appendedLate = false;
  const endLeases = async (): Promise<void> => {
    for (const lease of leases) await lease.release();
  };
  const die = async (): Promise<never> => {
    ending.abort(new Error("The process is dead."));
    await endLeases();
    throw death.reason;
  };
  const append: SessionStore["append"] = async (...args) => {
    await boundary();
    death.throwIfAborted();
    const end = fate();
    if (end === "append lost") return die();
    if (end === "frozen") {
      await endLeases();
      freeze();
      await thawed;
    }
    const result = await store.append(...args);
    appendedLate ||= end === "frozen";
    if (end === "append stored") return die();
    await boundary();
    return result;
  };
  const lease: SessionStore["lease"] = async (...args) => {
    const taken = await store.lease(...args);
    leases.add(taken);
    return taken;
  };
  const view = new Proxy(store, {
    get(target, key) {
      const own: unknown = key === "append" ? append : key === "lease" ? lease : Reflect.get(target, key, target);
      if (typeof own !== "function") return own;
      return (...args: unknown[]): unknown => {
        if (!death.aborted) return Reflect.apply(own, target, args);
        return key === "read" || key === "watch" ? failing(death.reason) : Promise.reject(death.reason);
      };
    },
  });
  return {
    store: view,
    death,
    frozen,
    get appendedLate() {
      return appendedLate;
    },
    thaw: () => thaw(),
  };
}

// biome-ignore lint/correctness/useYield: it fails instead of yielding.
async function* failing(reason: unknown): AsyncGenerator<never> {
  throw reason;
}
