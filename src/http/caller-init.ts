/** The caller of a request, as the application's own authentication describes them. */
export interface CallerInit {
  readonly userId: string;
  /** Whether the caller may see and change everyone's sessions (default: false). */
  readonly admin?: boolean;
  /** The rights of the caller; a right that is left out is granted. */
  readonly may?: Partial<CallerRights>;
  /** When the authentication expires, as an ISO-8601 time with milliseconds in UTC; open streams end then. */
  readonly expiresAt?: string;
}

/** All rights: the default for a caller whose rights are not given. */
export const ALL_RIGHTS: CallerRights = Object.freeze({ approve: true, run: true, files: true });

/**
 * Identifies the caller of a request; null if the request has no valid credentials.
 *
 * - It is called for every request to `/api/` without a token that the server knows, and must not read the body.
 * - Null is answered with 401. An exception or an invalid caller is an error of the server: it answers 500, writes a line to the
 *   log, and refuses the request.
 */
export type Authenticate = (request: Request) => CallerInit | null | Promise<CallerInit | null>;

/** The rights of a caller beside reading and writing sessions. */
export interface CallerRights {
  /** Answer the questions of runs, which lets calls run. */
  readonly approve: boolean;
  /** Use models and tools: start, recover, steer and cancel runs, and write summaries. */
  readonly run: boolean;
  /** Use the files in checkpoints: store, compare, restore and delete them. */
  readonly files: boolean;
}
