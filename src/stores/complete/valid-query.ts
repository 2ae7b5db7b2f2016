import { SessionError, show } from "../../session/errors.ts";
import { isTimestamp } from "../../session/log/header.ts";
import { checkName, checkSessionId, isCwd } from "../../session/id.ts";
import { PAGE_ITEMS_MAX } from "../../session/limits.ts";
import type { RunsCondition } from "../../session/log/open-runs.ts";
import type { ListPosition } from "../../session/store-driver.ts";
import type { AggregateKey, AggregateQuery, SessionQuery } from "../../session/store.ts";
import { checkCount, isStatusFilter } from "./valid-arguments.ts";
import { decodeCursor } from "./list-page.ts";

const LIMIT_DEFAULT = 100;
const RUNS_CONDITIONS: ReadonlySet<unknown> = new Set<RunsCondition>(["requested", "running", "asking", "interrupted"]);
const GROUP_KEYS: ReadonlySet<unknown> = new Set<AggregateKey>(["day", "model", "user"]);

/** The parts of a query: the filter, the size of the page, and the position after which it begins. */
interface CheckedQuery {
  readonly filter: Omit<SessionQuery, "limit" | "cursor">;
  readonly limit: number;
  readonly after: ListPosition | null;
}

/**
 * Checks a query and returns a copy. Unknown fields are refused, because a misspelt filter would list too much.
 *
 * @throws {SessionError} `INVALID_QUERY`, `INVALID_ID`, or `INVALID_OPTION` for the limit.
 */
export function checkQuery(query: SessionQuery): CheckedQuery {
  checkFields(query);
  const { userId, cwd, status, parentId, runs, dueBefore, deleted, limit = LIMIT_DEFAULT, cursor, ...unknown } = query;
  refuseUnknown(unknown);
  checkFilter({ userId, cwd, status });
  if (parentId !== undefined) checkSessionId(parentId);
  if (runs !== undefined && !RUNS_CONDITIONS.has(runs))
    throw invalidQuery(`runs is ${show(runs)}, not one of ${[...RUNS_CONDITIONS].join(", ")}`);
  if (dueBefore !== undefined && !isTimestamp(dueBefore))
    throw invalidQuery(`dueBefore is ${show(dueBefore)}, not an ISO-8601 time with milliseconds, in UTC`);
  if (deleted !== undefined && typeof deleted !== "boolean")
    throw invalidQuery(`deleted is ${show(deleted)}, not true or false`);
  checkCount(limit, "limit", 1, PAGE_ITEMS_MAX);
  const after = cursor === undefined ? null : decodeCursor(cursor);
  return { filter: definedFields({ userId, cwd, status, parentId, runs, dueBefore, deleted }), limit, after };
}

/**
 * Checks an aggregate query and returns a copy.
 *
 * @throws {SessionError} `INVALID_QUERY` or `INVALID_ID`.
 */
export function checkAggregateQuery(query: AggregateQuery): AggregateQuery {
  checkFields(query);
  const { userId, cwd, status, from, to, groupBy, ...unknown } = query;
  refuseUnknown(unknown);
  checkFilter({ userId, cwd, status });
  for (const [name, time] of Object.entries({ from, to })) {
    if (time !== undefined && !isTimestamp(time))
      throw invalidQuery(`${name} is ${show(time)}, not an ISO-8601 time with milliseconds, in UTC`);
  }
  if (
    !Array.isArray(groupBy) ||
    !groupBy.every((key) => GROUP_KEYS.has(key)) ||
    new Set(groupBy).size !== groupBy.length
  ) {
    throw invalidQuery("groupBy is not a list of day, model and user, each at most once");
  }
  return { ...definedFields({ userId, cwd, status, from, to }), groupBy: [...groupBy] };
}

/** The fields that are not undefined. */
function definedFields<T extends object>(fields: T): { readonly [Key in keyof T]?: Exclude<T[Key], undefined> } {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as ReturnType<typeof definedFields<T>>;
}

function checkFilter({ userId, cwd, status }: { userId: unknown; cwd: unknown; status: unknown }): void {
  if (userId !== undefined) checkName(userId, "a user");
  if (cwd !== undefined && !isCwd(cwd)) throw invalidQuery(`cwd is ${show(cwd)}, not a working directory`);
  if (status !== undefined && !isStatusFilter(status))
    throw invalidQuery(`status is ${show(status)}, not a status or a list of statuses`);
}

function checkFields(query: unknown): void {
  if (typeof query !== "object" || query === null || Array.isArray(query)) throw invalidQuery("it is not an object");
}

function refuseUnknown(fields: object): void {
  const [name] = Object.keys(fields);
  if (name !== undefined) throw invalidQuery(`the field ${show(name)} is unknown`);
}

function invalidQuery(problem: string): SessionError {
  return new SessionError("INVALID_QUERY", `The query is not valid: ${problem}.`);
}
