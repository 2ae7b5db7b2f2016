import { SessionError } from "../session/errors.ts";
import { isTimestamp } from "../session/log/header.ts";
import { checkName } from "../session/id.ts";
import { ALL_RIGHTS, type CallerInit, type CallerRights } from "./caller-init.ts";
import type { Caller } from "./server/server-services.ts";

/** A checked caller, with the time when the authentication expires. */
export interface KnownCaller {
  readonly caller: Caller;
  readonly expiresAtMs: number;
}

/** @throws {SessionError} `INVALID_OPTION` or `INVALID_ID` that names the invalid field. */
export function readCaller({ userId, admin = false, may = {}, expiresAt }: CallerInit): KnownCaller {
  checkName(userId, "a user");
  if (typeof admin !== "boolean") throw invalidCaller(`admin of ${userId} is neither true nor false.`);
  if (expiresAt !== undefined && !isTimestamp(expiresAt)) {
    throw invalidCaller(`expiresAt of ${userId} is not an ISO-8601 time with milliseconds, in UTC.`);
  }
  return {
    caller: Object.freeze({ userId, admin, may: readRights(may, userId) }),
    expiresAtMs: expiresAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(expiresAt),
  };
}

const RIGHTS = Object.keys(ALL_RIGHTS);

/** Unknown names are refused: a right that is left out is granted, so a misspelt `false` would grant it. */
function readRights(may: Partial<CallerRights>, userId: string): CallerRights {
  if (typeof may !== "object" || may === null || Array.isArray(may)) {
    throw invalidCaller(`may of ${userId} is not an object; give one such as { approve: false }.`);
  }
  for (const [name, value] of Object.entries(may)) {
    if (!RIGHTS.includes(name) || typeof value !== "boolean") {
      throw invalidCaller(`may of ${userId} takes ${RIGHTS.join(", ")}, each true or false.`);
    }
  }
  return Object.freeze({ ...ALL_RIGHTS, ...may });
}

function invalidCaller(message: string): SessionError {
  return new SessionError("INVALID_OPTION", message);
}
