import { SessionBusyError, SessionNotFoundError } from "../../session/errors.ts";
import type { LeaseTable } from "../../session/store-driver.ts";
import type { LeaseInfo } from "../../session/store.ts";
import type { RedisHandle } from "./redis-handle.ts";
import { ACQUIRE_LEASE, CURRENT_LEASE, RELEASE_LEASE, RENEW_LEASE } from "./session-scripts.ts";

/** Leases that hold among all processes on the server, by the server's clock unless the caller gave another. */
export class LeaseScripts implements LeaseTable {
  readonly #handle: RedisHandle;
  readonly #clock: (() => Date) | undefined;

  constructor(handle: RedisHandle, clock: (() => Date) | undefined) {
    this.#handle = handle;
    this.#clock = clock;
  }

  async acquire(sessionId: string, runId: string, ttlMs: number): Promise<LeaseInfo> {
    const args = [runId, String(ttlMs), this.clockArg()];
    const [kind, first, second] = (await this.#handle.run(
      ACQUIRE_LEASE,
      this.#handle.names.all(sessionId),
      args,
    )) as string[];
    if (kind === "gone") throw new SessionNotFoundError(sessionId);
    if (kind === "busy") throw new SessionBusyError(sessionId, `run ${first}`);
    return { sessionId, runId, token: Number(first), expiresAt: timeOf(second) };
  }

  async renew(sessionId: string, token: number, ttlMs: number): Promise<string | null> {
    const args = [String(token), String(ttlMs), this.clockArg()];
    const [kind, expires] = await this.#handle.run(RENEW_LEASE, this.#handle.names.all(sessionId), args);
    return kind === "ok" ? timeOf(expires) : null;
  }

  async release(sessionId: string, token: number): Promise<void> {
    await this.#handle.run(RELEASE_LEASE, this.#handle.names.all(sessionId), [String(token)]);
  }

  async current(sessionId: string): Promise<LeaseInfo | null> {
    const [kind, runId, token, expires] = await this.#handle.run(CURRENT_LEASE, this.#handle.names.all(sessionId), [
      this.clockArg(),
    ]);
    if (kind !== "ok") return null;
    return { sessionId, runId: runId as string, token: Number(token), expiresAt: timeOf(expires) };
  }

  /** The token of a session's live lease, or null. */
  async tokenOf(sessionId: string): Promise<number | null> {
    return (await this.current(sessionId))?.token ?? null;
  }

  /** What time it is, for a script; empty where the server's clock counts. */
  clockArg(): string {
    return this.#clock === undefined ? "" : String(this.#clock().getTime());
  }
}

function timeOf(milliseconds: unknown): string {
  return new Date(Number(milliseconds)).toISOString();
}
