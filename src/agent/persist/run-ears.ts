import type { Entry } from "../../session/log/entry.ts";
import type { SessionStore } from "../../session/store.ts";
import type { HeardFact } from "./run-sink.ts";

/** Runs that are over sooner pay nothing for being told. */
const LISTEN_AFTER_MS = 250;
const POLL_MS = 1_000;

/** Hears the entries of a session from a position on, in order and once each, in whatever ways they come. */
export class LogEar {
  readonly store: SessionStore;
  readonly sessionId: string;
  readonly #tell: (entry: Entry) => void;
  #heard: number;

  constructor(store: SessionStore, sessionId: string, from: number, tell: (entry: Entry) => void) {
    this.store = store;
    this.sessionId = sessionId;
    this.#heard = from;
    this.#tell = tell;
  }

  /** Everything before this position was heard. */
  get heard(): number {
    return this.#heard;
  }

  /** What is between is known already. */
  skipTo(version: number): void {
    this.#heard = Math.max(this.#heard, version);
  }

  /** Takes the next entry. Whoever brings entries brings all from a position on that was heard. */
  hear(entry: Entry): void {
    if (entry.seq < this.#heard) return;
    this.#heard = entry.seq + 1;
    this.#tell(entry);
  }

  /** Reads what is new, or what is before a position. */
  async look(before?: number): Promise<void> {
    const range = { after: this.#heard - 1, ...(before === undefined ? {} : { before }) };
    for await (const entry of this.store.read(this.sessionId, range)) this.hear(entry);
  }

  /** Begins to be told what others append; the answer ends it. */
  listen(): () => void {
    return ears.join(this);
  }
}

/** Whether an entry says something to a run. */
export function isSaidTo(runId: string, entry: Entry): entry is HeardFact {
  const said = entry.type === "cancel" || entry.type === "queued" || entry.type === "approval";
  return said && entry.runId === runId && entry.inherited !== true;
}

/** Tells the runs of this process what others append: pushed where the store can, else by one look a second for all. */
class RunEars {
  readonly #ears = new Set<LogEar>();
  readonly #polled = new Set<LogEar>();
  readonly #asking = new Set<SessionStore>();
  #timer: NodeJS.Timeout | null = null;

  /** The answer ends it. */
  join(ear: LogEar): () => void {
    this.#ears.add(ear);
    // Made when it is needed: making and aborting one takes a good part of a short run.
    let watching: AbortController | null = null;
    const timer = setTimeout(() => {
      watching = new AbortController();
      void this.#listen(ear, watching.signal);
    }, LISTEN_AFTER_MS).unref();
    return () => {
      clearTimeout(timer);
      watching?.abort();
      this.#ears.delete(ear);
      this.#stopPolling(ear);
    };
  }

  async lookNow(store: SessionStore, sessionId: string): Promise<void> {
    const told = [...this.#ears].filter((ear) => ear.sessionId === sessionId && ear.store === store);
    // A store that does not answer is asked again a second later.
    await Promise.all(told.map((ear) => ear.look().catch(() => {})));
  }

  async #listen(ear: LogEar, signal: AbortSignal): Promise<void> {
    const { store, sessionId } = ear;
    if (store.capabilities.watch === "push") {
      try {
        for await (const entry of store.watch(sessionId, { after: ear.heard - 1, signal })) ear.hear(entry);
      } catch {
        // A watch that breaks off is replaced by looking.
      }
    }
    if (!signal.aborted) this.#poll(ear);
  }

  #poll(ear: LogEar): void {
    this.#polled.add(ear);
    this.#timer ??= setInterval(() => this.#lookAtAll(), POLL_MS).unref();
  }

  #stopPolling(ear: LogEar): void {
    if (!this.#polled.delete(ear) || this.#polled.size > 0 || this.#timer === null) return;
    clearInterval(this.#timer);
    this.#timer = null;
  }

  #lookAtAll(): void {
    for (const store of new Set([...this.#polled].map((ear) => ear.store))) {
      if (!this.#asking.has(store)) void this.#lookIn(store);
    }
  }

  async #lookIn(store: SessionStore): Promise<void> {
    this.#asking.add(store);
    const polled = [...this.#polled].filter((ear) => ear.store === store);
    try {
      const heads = await store.heads(polled.map(({ sessionId }) => sessionId));
      const behind = polled.filter((ear, index) => (heads[index]?.version ?? 0) > ear.heard);
      await Promise.all(behind.map((ear) => ear.look()));
    } catch {
      // The store is asked again a second later; a run that cannot write to it fails by itself.
    } finally {
      this.#asking.delete(store);
    }
  }
}

const ears = new RunEars();

/** Lets the runs of this process look at a session at once, for whoever has just appended something for them. */
export function hearNow(store: SessionStore, sessionId: string): Promise<void> {
  return ears.lookNow(store, sessionId);
}
