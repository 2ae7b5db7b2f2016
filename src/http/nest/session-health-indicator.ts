import type { HealthOptions } from "../../lifecycle/check-health.ts";
import type { SessionManager } from "../../lifecycle/session-manager.ts";

/** How the sessions of an application are. */
export interface SessionHealth {
  readonly status: "up" | "down";
  readonly elapsedMs: number;
  /** Why they are down. */
  readonly reason?: string;
}

/** Tells whether the store of the sessions answers; its answer has the shape that health checks of Nest take. */
export class SessionHealthIndicator {
  readonly #manager: SessionManager;
  readonly #options: HealthOptions;

  /** Injected by the module. */
  constructor(manager: SessionManager, options: HealthOptions) {
    this.#manager = manager;
    this.#options = options;
  }

  /** Asks the store for a sign of life; one that comes too late is none. Never rejects for a store that is down. */
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
