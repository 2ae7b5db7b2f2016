import { copyJson, type JsonObject, type JsonValue, NotJson } from "../../internal/json.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { checkOptionsOf, type KeysOf } from "../check-arguments.ts";
import { SessionError, show } from "../errors.ts";
import { checkCwd, checkName, checkSessionId } from "../id.ts";
import { HEADER_BYTES_MAX } from "../limits.ts";

/** The version of the log format that this code writes. It also reads all earlier versions. */
export const FORMAT_VERSION = 3;

/** The operation that made a session. */
export type LineageKind =
  | "unknown"
  | "leaf_user"
  | "leaf_system"
  | "op_session_loop"
  | "op_fork"
  | "op_detach"
  | "op_merge"
  | "op_session_compress";

/** The origin of a session. */
export interface Lineage {
  readonly parents: readonly string[];
  readonly operator: string;
  readonly kind: LineageKind;
  readonly extras: readonly (readonly [string, JsonValue])[];
}

/** The position in another session's log up to which a fork copied it. */
export interface ForkPoint {
  readonly sessionId: string;
  /** The last copied entry, or null if none was copied. */
  readonly entryId: string | null;
  /** The number of copied entries. */
  readonly version: number;
  readonly branchName?: string;
}

/** Where a session's tools act. */
export interface SandboxPlacement {
  readonly backend: string;
  readonly spec: JsonValue;
  readonly handleId: string | null;
}

/**
 * Which entries of a session were imported. Their messages count; their approvals, runs and questions have no effect here.
 */
export interface Inherited {
  /** The number of imported entries at the beginning of the session. */
  readonly entries: number;
  /** Whether the usage of these entries counts in sums. */
  readonly counts: boolean;
}

/** The first record of a session. It never changes. */
export interface SessionHeader {
  readonly type: "session";
  readonly version: 1 | 2 | 3;
  readonly id: string;
  readonly createdAt: string;
  readonly userId: string | null;
  readonly cwd: string | null;
  readonly lineage: Lineage;
  readonly forkedFrom: ForkPoint | null;
  readonly sandbox: SandboxPlacement | null;
  readonly metadata: JsonObject;
  /** Only in an imported session and in forks of one. The import sets it, whatever the file contains. */
  readonly inherited?: Inherited;
  /** For a fork (since format 3): the first session of the chain of forks; read it with `rootIdOf`. */
  readonly rootId?: string;
}

/** Every version that this code reads. */
const VERSIONS: readonly unknown[] = [1, 2, FORMAT_VERSION];

/** Every kind of lineage. */
export const LINEAGE_KINDS: readonly LineageKind[] = [
  "unknown",
  "leaf_user",
  "leaf_system",
  "op_session_loop",
  "op_fork",
  "op_detach",
  "op_merge",
  "op_session_compress",
];

const HEADER_KEYS: KeysOf<SessionHeader> = {
  type: true,
  version: true,
  id: true,
  createdAt: true,
  userId: true,
  cwd: true,
  lineage: true,
  forkedFrom: true,
  sandbox: true,
  metadata: true,
  inherited: true,
  rootId: true,
};

const UNKNOWN_LINEAGE: Lineage = Object.freeze({ parents: [], operator: "implicit", kind: "unknown", extras: [] });

/**
 * Creates a header; missing fields get their defaults.
 *
 * @example
 * const store = await openStore("memory:");
 * const { header } = await store.create(createHeader({ userId: "user-1", metadata: { topic: "primes" } }));
 */
export function createHeader(init: Partial<SessionHeader> = {}): SessionHeader {
  checkOptionsOf(init, HEADER_KEYS, "createHeader");
  return checkHeader({
    type: "session",
    version: FORMAT_VERSION,
    id: init.id ?? uuidv7(),
    createdAt: init.createdAt ?? new Date().toISOString(),
    userId: init.userId ?? null,
    cwd: init.cwd ?? null,
    lineage: init.lineage ?? UNKNOWN_LINEAGE,
    forkedFrom: init.forkedFrom ?? null,
    sandbox: init.sandbox ?? null,
    metadata: init.metadata ?? {},
    ...(init.inherited === undefined ? {} : { inherited: init.inherited }),
    ...(init.rootId === undefined ? {} : { rootId: init.rootId }),
  });
}

/**
 * Checks every field of a header and returns a frozen copy.
 *
 * @throws {SessionError} `INVALID_ID`, `INVALID_HEADER`, or `UNSUPPORTED_VERSION` for a header of a later format.
 */
export function checkHeader(value: unknown): SessionHeader {
  const header = copyHeader(value);
  if (header.type !== "session") throw invalidHeader(`its type is ${show(header.type)}, not "session"`);
  if (typeof header.version === "number" && header.version > FORMAT_VERSION) {
    const which = typeof header.id === "string" ? `Session ${show(header.id)}` : "A session without an id";
    throw new SessionError(
      "UNSUPPORTED_VERSION",
      `${which} has format version ${header.version}; this version of skein reads up to ${FORMAT_VERSION}, so update skein to open it.`,
    );
  }
  if (!VERSIONS.includes(header.version))
    throw invalidHeader(`its version is ${show(header.version)}, not a number from 1 to ${FORMAT_VERSION}`);
  checkSessionId(header.id);
  if (!isTimestamp(header.createdAt))
    throw invalidHeader(`createdAt is ${show(header.createdAt)}, not an ISO-8601 time`);
  if (header.userId !== null) checkName(header.userId, "a user");
  if (header.cwd !== null) checkCwd(header.cwd);
  checkLineage(header.lineage);
  checkForkPoint(header.forkedFrom);
  checkSandbox(header.sandbox);
  if (!isObject(header.metadata)) throw invalidHeader("metadata is not an object");
  checkInherited(header.inherited);
  if (header.rootId !== undefined) checkSessionId(header.rootId);
  return header as unknown as SessionHeader;
}

/**
 * The id of the first session in a chain of forks; a session that is not a fork is its own root. A fork from before
 * format 3 has no `rootId`; this then returns the session that it was forked from, which may be a fork itself.
 */
export function rootIdOf({ id, rootId, forkedFrom }: Pick<SessionHeader, "id" | "rootId" | "forkedFrom">): string {
  return rootId ?? forkedFrom?.sessionId ?? id;
}

/** Whether a text is an ISO-8601 time with milliseconds in UTC, as `toISOString` writes it. */
export function isTimestamp(value: unknown): value is string {
  if (typeof value !== "string" || !TIMESTAMP.test(value)) return false;
  // `Date` accepts the 30th of February as a day in March; days up to 28 exist in every month.
  return Number(value.slice(8, 10)) <= 28 || new Date(value).toISOString() === value;
}

const TIMESTAMP = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{3}Z$/;

function copyHeader(value: unknown): Record<string, unknown> {
  if (!isObject(value)) throw invalidHeader("it is not an object");
  try {
    const copy = copyJson(value, "header") as Record<string, unknown>;
    if (new TextEncoder().encode(JSON.stringify(copy)).length > HEADER_BYTES_MAX) {
      throw new SessionError(
        "TOO_LARGE",
        `The session's header is larger than ${HEADER_BYTES_MAX} bytes; keep large values in entries.`,
      );
    }
    return copy;
  } catch (error) {
    if (error instanceof NotJson) throw new SessionError("INVALID_VALUE", `${error.message}.`, { cause: error });
    throw error;
  }
}

/** @throws {SessionError} `INVALID_HEADER` or `INVALID_ID` unless the value is a valid lineage. */
export function checkLineage(value: unknown): void {
  if (!isObject(value)) throw invalidHeader("lineage is not an object");
  const { parents, operator, kind, extras } = value;
  if (!Array.isArray(parents)) throw invalidHeader("lineage.parents is not a list of session ids");
  for (const parent of parents) checkSessionId(parent);
  if (typeof operator !== "string") throw invalidHeader("lineage.operator is not a text");
  if (!LINEAGE_KINDS.includes(kind as LineageKind)) throw invalidHeader(`lineage.kind ${show(kind)} is not known`);
  if (
    !Array.isArray(extras) ||
    !extras.every((pair) => Array.isArray(pair) && pair.length === 2 && typeof pair[0] === "string")
  ) {
    throw invalidHeader("lineage.extras is not a list of pairs");
  }
}

function checkForkPoint(value: unknown): void {
  if (value === null) return;
  if (!isObject(value)) throw invalidHeader("forkedFrom is neither null nor an object");
  checkSessionId(value.sessionId);
  if (value.entryId !== null) checkName(value.entryId, "an entry");
  if (!Number.isSafeInteger(value.version) || (value.version as number) < 0)
    throw invalidHeader("forkedFrom.version is not a count");
  if (value.branchName !== undefined && typeof value.branchName !== "string")
    throw invalidHeader("forkedFrom.branchName is not a text");
}

function checkInherited(value: unknown): void {
  if (value === undefined) return;
  if (!isObject(value)) throw invalidHeader("inherited is not an object");
  if (!Number.isSafeInteger(value.entries) || (value.entries as number) < 0)
    throw invalidHeader("inherited.entries is not a count");
  if (typeof value.counts !== "boolean") throw invalidHeader("inherited.counts is not true or false");
}

function checkSandbox(value: unknown): void {
  if (value === null) return;
  if (!isObject(value)) throw invalidHeader("sandbox is neither null nor an object");
  if (typeof value.backend !== "string") throw invalidHeader("sandbox.backend is not a text");
  if (value.spec === undefined) throw invalidHeader("sandbox.spec is missing");
  if (value.handleId !== null && typeof value.handleId !== "string")
    throw invalidHeader("sandbox.handleId is neither null nor a text");
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalidHeader(problem: string): SessionError {
  return new SessionError("INVALID_HEADER", `The session's header is not valid: ${problem}.`);
}
