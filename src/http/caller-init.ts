import type { CallerRights } from "./caller-rights.ts";

/** Who a request comes from, as an application's own sign-in says it. */
export interface CallerInit {
  readonly userId: string;
  /** May see and change everyone's sessions (default: false). */
  readonly admin?: boolean;
  /** What they may do; a right that is left out is given. */
  readonly may?: Partial<CallerRights>;
  /** Until when this holds, as an ISO-8601 time with milliseconds in UTC; streams that are open then end. */
  readonly expiresAt?: string;
}

/** The rights of whoever nothing else is said of. */
export const ALL_RIGHTS: CallerRights = Object.freeze({ approve: true, run: true, files: true });

/**
 * Says who a request comes from; null for nobody.
 *
 * - It is asked for every request to `/api/` whose token is none of the server's own, and must not read the body.
 * - Null is answered with 401. What it throws, and an answer that makes no sense, is a failure of the server: 500, a line in
 *   the log, and nobody comes in.
 */
export type Authenticate = (request: Request) => CallerInit | null | Promise<CallerInit | null>;
