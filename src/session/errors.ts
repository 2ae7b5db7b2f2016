import type { SessionStatus } from "./log/entry.ts";
import type { BudgetLevel } from "./payer.ts";

/** The error codes, for programs to branch on; docs/errors.md explains each. */
export type SessionErrorCode =
  | "INVALID_ID"
  | "INVALID_HEADER"
  | "INVALID_ENTRY"
  | "INVALID_VALUE"
  | "INVALID_OPTION"
  | "INVALID_QUERY"
  | "TOO_LARGE"
  | "UNKNOWN_ENTRY"
  | "ENTRY_EXISTS"
  | "SESSION_EXISTS"
  | "SESSION_NOT_FOUND"
  | "SESSION_CLOSED"
  | "SESSION_EXPIRED"
  | "SESSION_SUSPENDED"
  | "SESSION_BUSY"
  | "TRANSITION"
  | "CAPACITY"
  | "SESSIONS_QUOTA_EXCEEDED"
  | "BYTES_QUOTA_EXCEEDED"
  | "BLOB_NOT_FOUND"
  | "BLOBS_QUOTA_EXCEEDED"
  | "CONFLICT"
  | "LEASE_LOST"
  | "DAMAGED"
  | "NOT_A_SESSION"
  | "UNSUPPORTED_VERSION"
  | "LINEAGE"
  | "CHECKPOINT_NOT_FOUND"
  | "CHECKPOINT_EXISTS"
  | "STORE_CLOSED"
  | "STORE_FAILED"
  | "DRIVER_MISSING"
  | "DRIVER_VERSION"
  | "READ_ONLY"
  | "ACTIVE_PATH"
  | "CANCELLED"
  | "SUMMARY_FAILED"
  | "MODEL_FAILED"
  | "KEY_MISSING"
  | "INVALID_TOOL"
  | "OUTPUT_INVALID"
  | "PRICE_UNKNOWN"
  | "BUDGET_EXCEEDED"
  | "SANDBOX_FAILED"
  | "NO_SANDBOX"
  | "ISOLATION_MISSING"
  | "NO_SESSION"
  | "NOT_SUPPORTED"
  | "ERASED"
  | "RUN_ENDED"
  | "RUN_OPEN"
  | "QUESTION_NOT_FOUND"
  | "APPROVAL_NEEDED"
  | "AGENT_NOT_FOUND"
  | "MODEL_NOT_FOUND"
  | "TOOL_NOT_FOUND"
  | "ABORTED"
  | "DEADLINE"
  | "DEADLOCK";

/** The marker of errors of this package. Other copies and versions of the package use the same one. */
const BRAND = Symbol.for("skein.SessionError");

/** Base of every error this package throws on purpose. Branch on `code`, never on `message`. */
export class SessionError extends Error {
  /** `instanceof` also accepts errors of another copy of the package; it compares class names. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    // biome-ignore lint/complexity/noThisInStatic: classes that extend this one inherit the method, and one of them may be asked.
    const asked = this as typeof SessionError;
    if (Function.prototype[Symbol.hasInstance].call(asked, value)) return true;
    if (typeof value !== "object" || value === null || !(BRAND in value)) return false;
    return asked === SessionError || asked.name === (value as { name?: unknown }).name;
  }
  static {
    Object.defineProperty(SessionError.prototype, BRAND, { value: true });
  }
  readonly code: SessionErrorCode;
  constructor(code: SessionErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.code = code;
  }
  override get name(): string {
    return this.constructor.name;
  }
}

/**
 * The server of a store cannot be reached, lost the connection during a call, or cannot do the call now, for instance during a
 * failover. Retrying the same call may work.
 */
export class StoreUnreachableError extends SessionError {
  constructor(message: string, options: { readonly cause: unknown }) {
    super("STORE_FAILED", message, options);
  }
}

/** The store has no session with this id, or none that the caller may see. */
export class SessionNotFoundError extends SessionError {
  readonly sessionId: string;
  constructor(sessionId: string) {
    super("SESSION_NOT_FOUND", `There is no session ${show(sessionId)}.`);
    this.sessionId = sessionId;
  }
}

/** The session is closed and accepts no more turns; fork it to continue. */
export class SessionClosedError extends SessionError {
  readonly sessionId: string;
  constructor(sessionId: string) {
    super("SESSION_CLOSED", `Session ${sessionId} is closed; fork it to continue.`);
    this.sessionId = sessionId;
  }
}

/** The session expired and accepts no more turns; fork it to continue. */
export class SessionExpiredError extends SessionError {
  readonly sessionId: string;
  constructor(sessionId: string) {
    super("SESSION_EXPIRED", `Session ${sessionId} has expired; fork it to continue.`);
    this.sessionId = sessionId;
  }
}

/** The session is suspended; resume it first. */
export class SessionSuspendedError extends SessionError {
  readonly sessionId: string;
  constructor(sessionId: string) {
    super("SESSION_SUSPENDED", `Session ${sessionId} is suspended; resume it first.`);
    this.sessionId = sessionId;
  }
}

/** A session with the present status cannot change to the requested one. */
export class SessionTransitionError extends SessionError {
  readonly sessionId: string;
  readonly from: SessionStatus;
  readonly to: SessionStatus;
  constructor(sessionId: string, from: SessionStatus, to: SessionStatus) {
    super("TRANSITION", `Session ${sessionId} cannot change its status from ${from} to ${to}.`);
    this.sessionId = sessionId;
    this.from = from;
    this.to = to;
  }
}

/** A limit was reached: open sessions of a user, turns of a session, forks of a session. */
export class SessionCapacityError extends SessionError {
  readonly what: string;
  readonly limit: number;
  constructor(what: string, limit: number) {
    super("CAPACITY", `The limit of ${limit} ${what} is reached.`);
    this.what = what;
    this.limit = limit;
  }
}

/** Another writer appended first: read again and decide again. Nothing was written. */
export class SessionConflictError extends SessionError {
  readonly sessionId: string;
  readonly expected: number;
  readonly actual: number;
  constructor(sessionId: string, expected: number, actual: number) {
    super("CONFLICT", `Session ${sessionId} is at version ${actual}, not at the expected ${expected}.`);
    this.sessionId = sessionId;
    this.expected = expected;
    this.actual = actual;
  }
}

/** Another run holds the session's lease, or another process the file's lock, and did not release it in time. */
export class SessionBusyError extends SessionError {
  readonly sessionId: string;
  readonly holder: string;
  constructor(sessionId: string, holder: string) {
    super("SESSION_BUSY", `Session ${sessionId} is in use by ${holder}; try again when it is done.`);
    this.sessionId = sessionId;
    this.holder = holder;
  }
}

/** The error of an append that only the holder of an open run may make. */
export function openRunError(sessionId: string, runId: string, { type }: { readonly type: string }): SessionError {
  return new SessionError(
    "SESSION_BUSY",
    `Run ${runId} of session ${sessionId} is open, and only its holder may append this ${type} entry; let the run end, recover it, or record its end first.`,
  );
}

/** The lease given as a guard is no longer the session's current one. Nothing was written. */
export class LeaseLostError extends SessionError {
  readonly sessionId: string;
  readonly token: number;
  constructor(sessionId: string, token: number) {
    super("LEASE_LOST", `Lease ${token} of session ${sessionId} has expired or was taken over.`);
    this.sessionId = sessionId;
    this.token = token;
  }
}

/** A stored session cannot be read as a whole; `salvage: true` returns what can still be read. */
export class SessionDamagedError extends SessionError {
  readonly path: string;
  readonly line: number;
  readonly offset: number;
  readonly reason: string;
  constructor(init: { path: string; line: number; offset: number; reason: string; cause?: unknown }) {
    super(
      "DAMAGED",
      `${init.path} is damaged at line ${init.line}: ${init.reason}; open it with salvage to see the rest.`,
      {
        cause: init.cause,
      },
    );
    this.path = init.path;
    this.line = init.line;
    this.offset = init.offset;
    this.reason = init.reason;
  }
}

/** The graph of sessions has a cycle or misses a parent. */
export class LineageError extends SessionError {
  readonly sessionId: string;
  constructor(sessionId: string, message: string) {
    super("LINEAGE", message);
    this.sessionId = sessionId;
  }
}

/** The user has used up a budget. The model was not called. */
export class BudgetExceededError extends SessionError {
  readonly userId: string;
  readonly level: BudgetLevel;
  constructor(userId: string, level: BudgetLevel) {
    const { window, unit, limit, spent, movesOnAt } = level;
    const amount = (value: number): string => (unit === "cost" ? `$${Number(value.toFixed(6))}` : `${value} tokens`);
    const until =
      limit === 0
        ? "the budget allows no requests"
        : movesOnAt === null
          ? "requests under way have reserved the rest, so try again when they have ended"
          : `the window moves on at ${movesOnAt}`;
    super(
      "BUDGET_EXCEEDED",
      `User ${show(userId)} has spent ${amount(spent)} of ${amount(limit)} in ${window}; ${until}.`,
    );
    this.userId = userId;
    this.level = level;
  }
}

/** No checkpoint has this id. */
export class CheckpointNotFoundError extends SessionError {
  readonly checkpointId: string;
  constructor(checkpointId: string) {
    super("CHECKPOINT_NOT_FOUND", `There is no checkpoint ${show(checkpointId)}.`);
    this.checkpointId = checkpointId;
  }
}

/** The session has no entry with the given id. */
export class UnknownEntryError extends SessionError {
  readonly sessionId: string | null;
  readonly entryId: string;
  constructor(sessionId: string | null, entryId: string) {
    super("UNKNOWN_ENTRY", `There is no entry ${show(entryId)} ${where(sessionId)}.`);
    this.sessionId = sessionId;
    this.entryId = entryId;
  }
}

/** The error for a fact where a node of the tree is required. */
export function notANode(sessionId: string | null, entryId: string): SessionError {
  return new SessionError(
    "INVALID_ENTRY",
    `Entry ${show(entryId)} ${where(sessionId)} is a fact, not a turn; choose a node of the tree.`,
  );
}

function where(sessionId: string | null): string {
  return sessionId === null ? "among these" : `in session ${sessionId}`;
}

/** A caller's value for an error message, quoted and shortened. */
export function show(value: unknown): string {
  const text =
    typeof value === "string" ? value : String(typeof value === "object" && value !== null ? typeof value : value);
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
