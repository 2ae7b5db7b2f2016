import { SessionBusyError, SessionNotFoundError } from "../../session/errors.ts";
import type { LeaseTable, StoredLease } from "../../session/store-driver.ts";
import type { RedisReply } from "./redis-client.ts";
import type { RedisHandle, RedisScript } from "./redis-handle.ts";
import { ACQUIRE_LEASE, CURRENT_LEASE, RENEW_LEASE } from "./session-scripts.ts";

/** Leases, which all processes on the server share. They expire by the clock of the server, or by the given clock. */
export class LeaseScripts implements LeaseTable {
  readonly #handle: RedisHandle;
  readonly #clock: (() => Date) | undefined;

  constructor(handle: RedisHandle, clock: (() => Date) | undefined) {
    this.#handle = handle;
    this.#clock = clock;
  }

  async acquire(sessionId: string, runId: string, ttlMs: number): Promise<StoredLease> {
    const [kind, first, expires] = await this.#run(ACQUIRE_LEASE, sessionId, [runId, String(ttlMs), this.clockArg()]);
    if (kind === "gone") throw new SessionNotFoundError(sessionId);
    if (kind === "busy") throw new SessionBusyError(sessionId, `run ${first}`);
    return { runId, token: Number(first), untilMs: Number(expires) };
  }

  async renew(sessionId: string, token: number, ttlMs: number): Promise<number | null> {
    const args = [String(token), String(ttlMs), this.clockArg()];
    const [kind, expires] = await this.#run(RENEW_LEASE, sessionId, args);
    return kind === "ok" ? Number(expires) : null;
  }

  async release(sessionId: string, token: number): Promise<void> {
    await this.renew(sessionId, token, 0);
  }

  async current(sessionId: string): Promise<StoredLease | null> {
    const [kind, runId, token, expires] = await this.#run(CURRENT_LEASE, sessionId, [this.clockArg()]);
    return kind === "ok" ? { runId: runId as string, token: Number(token), untilMs: Number(expires) } : null;
  }

  /** The time as an argument of a script; empty for the clock of the server. */
  clockArg(): string {
    return this.#clock === undefined ? "" : String(this.#clock().getTime());
  }

  #run(script: RedisScript, sessionId: string, args: readonly string[]): Promise<readonly RedisReply[]> {
    return this.#handle.run(script, this.#handle.names.all(sessionId), args);
  }
}
