import type { SessionError } from "../session/errors.ts";

/** How a bell is rung. */
export interface RingOptions {
  /** Whose run waits: the name of an agent or of a group, which share one namespace. */
  readonly runner: string;
  /** When to ring (default: now). */
  readonly at?: Date;
  /** Of those that wait, the lowest goes first (default 0). */
  readonly priority?: number;
}

/** How rings are answered. */
export interface ListenOptions {
  /** How many are answered at once, for all runners together (default 1). */
  readonly concurrency?: number;
  /** How long a ring stays with a listener that has died, before another one hears it (default 30,000 ms). */
  readonly leaseMs?: number;
}

/** Answers a ring. The signal aborts when the listener is being closed. */
export type RingHandler = (sessionId: string, signal: AbortSignal) => Promise<void>;

/** Someone who listens for rings, or for what is published. */
export interface Listening {
  /** Takes no more; resolves when the rings that were taken are answered. */
  close(): Promise<void>;
}

/**
 * Tells workers that a session has something to do. What there is to do is in the log: a ring that is lost delays a run
 * until the next sweep, and loses nothing.
 *
 * - Each ring is heard by one of those who listen for its runner; one that nobody listens for waits.
 * - Rings of a session for one runner are answered one after the other. Those that come while one waits are the same ring;
 *   those that come while one is answered are one more, which waits.
 * - A ring for later replaces the one for later that the session has.
 * - A ring whose listener died is heard by another within `leaseMs` and a second.
 * - A handler that fails has answered: nothing is tried again.
 * - What is published reaches all who have subscribed by then, in the order in which one publisher gave it, or is lost.
 */
export interface RunBell {
  ring(sessionId: string, options: RingOptions): Promise<void>;
  listen(runners: readonly string[], handler: RingHandler, options?: ListenOptions): Promise<Listening>;
  counts(): Promise<BellCounts>;
  publish(topic: string, data: Uint8Array): Promise<void>;
  subscribe(topic: string, hear: (data: Uint8Array) => void): Promise<Listening>;
  /** Tells what goes wrong while nobody asks for anything, once for each time that it was well before; what comes back ends that. */
  onError(tell: (error: SessionError) => void): () => void;
  /** Forgets who listens and what it knows; a shared bell keeps what waits. */
  close(): Promise<void>;
}

/** How many rings wait for someone, are being answered, and are for later. */
export interface BellCounts {
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
}
