import { checkKeys, type KeysOf } from "../../session/check-arguments.ts";
import type { SessionStatus } from "../../session/log/entry.ts";
import { SessionError, show } from "../../session/errors.ts";
import { isTimestamp } from "../../session/log/header.ts";
import { checkName, checkSessionId } from "../../session/id.ts";
import type { DriverPurge, ReadRange } from "../../session/store-driver.ts";
import type {
  AppendOptions,
  CreateOptions,
  ForkOptions,
  Guard,
  PurgeQuery,
  ReadJsonOptions,
  ReadOptions,
  UndeleteOptions,
  WatchOptions,
} from "../../session/store.ts";

/** The longest duration of a lease. */
export const LEASE_TTL_MS_MAX: number = 24 * 60 * 60 * 1000;

/** A time after all times that a store can contain. */
export const END_OF_TIME = "9999-12-31T23:59:59.999Z";

/** All statuses of a session. */
export const STATUSES: readonly SessionStatus[] = ["active", "suspended", "closed", "expired"];

/** Whether a value is a status, or a non-empty list of statuses. */
export function isStatusFilter(value: unknown): boolean {
  const statuses: readonly unknown[] = Array.isArray(value) ? value : [value];
  return statuses.length > 0 && statuses.every((status) => (STATUSES as readonly unknown[]).includes(status));
}

/** @throws {SessionError} `INVALID_OPTION` unless the value is a whole number from `min` to `max`. */
export function checkCount(
  value: unknown,
  name: string,
  min = 0,
  max: number = Number.MAX_SAFE_INTEGER,
): asserts value is number {
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return;
  const range = max === Number.MAX_SAFE_INTEGER ? `of ${min} or more` : `from ${min} to ${max}`;
  throw invalidOption(name, value, `a whole number ${range}`);
}

/** The error for an option with an invalid value. */
export function invalidOption(name: string, value: unknown, wanted: string): SessionError {
  return new SessionError("INVALID_OPTION", `The option ${name} is ${show(value)}; it must be ${wanted}.`);
}

/** @throws {SessionError} `INVALID_OPTION` unless the value is undefined or one of `choices`. */
export function checkChoice(value: unknown, name: string, choices: readonly unknown[]): void {
  if (value === undefined || choices.includes(value)) return;
  throw invalidOption(name, value, choices.map((choice) => JSON.stringify(choice)).join(" or "));
}

/** @throws {SessionError} `INVALID_OPTION` unless the value is undefined or a function. */
export function checkClock(value: unknown): void {
  if (value !== undefined && typeof value !== "function") throw invalidOption("clock", value, "a function");
}

/** @throws {SessionError} `INVALID_OPTION` unless the value is a file path. */
export function checkPath(value: unknown, name: string): void {
  if (typeof value !== "string" || value === "" || value.includes("\0")) throw invalidOption(name, value, "a path");
}

/** @throws {SessionError} `INVALID_OPTION` unless the value is a time in the format of `toISOString`. */
export function checkTime(value: unknown, name: string): asserts value is string {
  if (!isTimestamp(value)) throw invalidOption(name, value, "an ISO-8601 time with milliseconds, in UTC");
}

const APPEND: KeysOf<AppendOptions> = {
  expectedVersion: true,
  onto: true,
  below: true,
  guard: true,
  by: true,
  run: true,
  findBlob: true,
  verbatim: true,
};
const GUARD: KeysOf<Guard> = {
  status: true,
  maxTurns: true,
  variablesBytesMax: true,
  leaseToken: true,
  noOpenRun: true,
  openRun: true,
  holds: true,
};
const PURGE: KeysOf<PurgeQuery> = { before: true, sessionId: true, userId: true };
const WATCH: KeysOf<WatchOptions> = { after: true, signal: true };
const READ: KeysOf<ReadOptions> = { after: true, before: true, limit: true, reverse: true, deleted: true };
const READ_JSON: KeysOf<ReadJsonOptions> = { ...READ, charactersMax: true };
const MAKE = {
  create: {
    entries: true,
    findBlob: true,
    variablesBytesMax: true,
    maxOpenPerUser: true,
  } satisfies KeysOf<CreateOptions>,
  fork: { at: true, maxForks: true, maxOpenPerUser: true } satisfies KeysOf<ForkOptions>,
  undelete: { maxOpenPerUser: true } satisfies KeysOf<UndeleteOptions>,
} as const;

/** @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` unless the options of an append are valid. */
export function checkAppendOptions(options: AppendOptions): void {
  checkOptionsObject(options);
  checkKeys(options, APPEND, "append");
  const { expectedVersion, onto, below, guard, verbatim, by, run } = options;
  if (by !== undefined) checkName(by, "a user");
  if (run !== undefined) checkRun(run, options);
  if (expectedVersion !== undefined) checkCount(expectedVersion, "expectedVersion");
  if (onto !== undefined && onto !== null) checkName(onto, "an entry");
  if (below !== undefined && below !== null) checkName(below, "an entry");
  if (onto !== undefined && below !== undefined) {
    throw new SessionError("INVALID_OPTION", "An append accepts onto or below, not both.");
  }
  checkChoice(verbatim, "verbatim", [true, false]);
  if (guard === undefined) return;
  checkOptionsObject(guard, "guard");
  checkKeys(guard, GUARD, "The guard of an append");
  if (guard.status !== undefined && !isStatusFilter(guard.status))
    throw invalidOption("guard.status", guard.status, "a status, or a list of statuses");
  for (const name of ["maxTurns", "variablesBytesMax", "leaseToken"] as const)
    if (guard[name] !== undefined) checkCount(guard[name], `guard.${name}`);
  if (guard.openRun !== undefined) checkName(guard.openRun, "a run's");
  for (const name of ["noOpenRun", "holds"] as const) checkChoice(guard[name], `guard.${name}`, [true]);
}

/** Only a run itself may set the run of its entries, because readers rely on it. */
function checkRun(run: string, { guard, verbatim }: AppendOptions): void {
  checkName(run, "a run");
  if (verbatim === true || guard?.leaseToken !== undefined || guard?.holds === true) return;
  throw new SessionError("INVALID_OPTION", `The append is in the name of run ${show(run)} without that run's lease.`);
}

/** Checks what to purge. Without a `before`, sets it to the end of time, so that all deletions are before it. */
export function checkPurge(which: string | PurgeQuery): DriverPurge {
  if (typeof which === "string") return checkPurge({ before: which });
  checkOptionsObject(which);
  checkKeys(which, PURGE, "purge");
  const { before = END_OF_TIME, sessionId, userId } = which;
  checkTime(before, "before");
  if (sessionId !== undefined) checkSessionId(sessionId);
  if (userId !== undefined) checkName(userId, "a user");
  if (which.before === undefined && sessionId === undefined && userId === undefined)
    throw new SessionError("INVALID_OPTION", "A purge needs a time, a session or a user.");
  return { ...which, before };
}

/** @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` unless the options of `create`, `fork` or `undelete` are valid. */
export function checkMakeOptions(
  options: CreateOptions & ForkOptions & UndeleteOptions,
  call: keyof typeof MAKE,
): void {
  checkOptionsObject(options);
  checkKeys(options, MAKE[call], call);
  if (options.at !== undefined && options.at !== null) checkName(options.at, "an entry");
  for (const name of ["variablesBytesMax", "maxOpenPerUser", "maxForks"] as const)
    if (options[name] !== undefined) checkCount(options[name], name);
}

/** @throws {SessionError} `INVALID_OPTION` unless the options of a watch are valid. */
export function checkWatchOptions(options: WatchOptions): void {
  checkOptionsObject(options);
  checkKeys(options, WATCH, "watch");
  if (options.after !== undefined) checkCount(options.after, "after", -1);
  if (options.signal !== undefined && !(options.signal instanceof AbortSignal))
    throw invalidOption("signal", options.signal, "an AbortSignal");
}

/**
 * Checks read options and fills in the defaults.
 *
 * @throws {SessionError} `INVALID_OPTION` for an invalid position, limit or flag.
 */
export function readRange(options: ReadJsonOptions, call: "read" | "readJson" = "read"): ReadRange {
  checkOptionsObject(options);
  checkKeys(options, call === "read" ? READ : READ_JSON, call);
  const { after = -1, before = Number.MAX_SAFE_INTEGER, limit = Number.MAX_SAFE_INTEGER } = options;
  const { reverse = false, deleted = false } = options;
  checkCount(after, "after", -1);
  checkCount(before, "before", -1);
  checkCount(limit, "limit");
  checkChoice(reverse, "reverse", [true, false]);
  checkChoice(deleted, "deleted", [true, false]);
  return { after, before, limit, reverse, deleted };
}

/** @throws {SessionError} `INVALID_OPTION` unless the value is an object. */
function checkOptionsObject(options: unknown, name = "options"): void {
  if (typeof options === "object" && options !== null && !Array.isArray(options)) return;
  throw new SessionError("INVALID_OPTION", `The ${name} of the call must be an object, not ${show(options)}.`);
}
