import type { HealthOptions } from "../../lifecycle/check-health.ts";
import type { SessionManager } from "../../lifecycle/session-manager.ts";

/** The health of the session store. */
export interface SessionHealth {
  readonly status: "up" | "down";
  readonly elapsedMs: number;
  /** Why the store is down. */
  readonly reason?: string;
}

/** A health indicator for the session store; its answer has the shape that Nest's health checks expect. */
export class SessionHealthIndicator {
  readonly #manager: SessionManager;
  readonly #options: HealthOptions;

  /** Injected by the module. */
  constructor(manager: SessionManager, options: HealthOptions) {
    this.#manager = manager;
    this.#options = options;
  }

  /** Pings the store with a timeout. Never rejects for a store that is down. */
  async check<K extends string = "sessions">(
    key: K = "sessions" as K,
    options: HealthOptions = {},
  ): Promise<Record<K, SessionHealth>> {
    const { healthy, elapsedMs, reason } = await this.#manager.health({ ...this.#options, ...options });
    const health: SessionHealth = {
      status: healthy ? "up" : "down",
      elapsedMs,
      ...(reason === null ? {} : { reason }),
    };
    return { [key]: health } as Record<K, SessionHealth>;
  }
}
