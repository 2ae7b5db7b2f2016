import { checkOptionsOf, type KeysOf } from "../../../session/check-arguments.ts";
import { SessionError } from "../../../session/errors.ts";
import { checkCount } from "../../../stores/complete/valid-arguments.ts";
import type { ServerLimits } from "../../create-server.ts";
import type { RateLimit } from "./gate.ts";
import { CONTENT_PARTS_CEILING } from "../schema.ts";

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;
const RATE_DEFAULT: RateLimit = { requestsPerSecond: 50, burst: 200 };
const TIMEOUT_MS_MAX = 2 ** 31 - 1;

const LIMITS: KeysOf<ServerLimits> = {
  bodyBytesMax: true,
  bodyValuesMax: true,
  contentBytesMax: true,
  contentPartsMax: true,
  importBytesMax: true,
  uploadBytesMax: true,
  importEntriesMax: true,
  bodyBytesPerUser: true,
  bodyBytesAtOnce: true,
  answerBytesPerUser: true,
  answerBytesAtOnce: true,
  heavyAtOnce: true,
  answerTimeoutMs: true,
  streamsPerUser: true,
  storedSessionsPerUser: true,
  storedBytesPerUser: true,
  maxRunsPerUser: true,
  maxWaiting: true,
  urlCharactersMax: true,
  headersTimeoutMs: true,
  requestTimeoutMs: true,
  rate: true,
};
const RATE: KeysOf<RateLimit> = { requestsPerSecond: true, burst: true };

/** All limits of a server, with defaults for those that are left out. */
export interface CheckedLimits extends Required<ServerLimits> {
  readonly rate: RateLimit | null;
}

/** @throws {SessionError} `INVALID_OPTION` for an invalid limit. */
export function checkServerLimits(limits: ServerLimits, guarded: boolean): CheckedLimits {
  checkOptionsOf(limits, LIMITS, "limits");
  if (limits.rate != null) checkOptionsOf(limits.rate, RATE, "limits.rate");
  const checked = withDefaults(limits, guarded);
  const { headersTimeoutMs, requestTimeoutMs, answerTimeoutMs, contentPartsMax, rate, ...counts } = checked;
  for (const [name, value] of Object.entries(counts)) if (value !== null) checkCount(value, `limits.${name}`, 1);
  checkCount(contentPartsMax, "limits.contentPartsMax", 1, CONTENT_PARTS_CEILING);
  checkCount(headersTimeoutMs, "limits.headersTimeoutMs", 1, TIMEOUT_MS_MAX);
  checkCount(requestTimeoutMs, "limits.requestTimeoutMs", headersTimeoutMs, TIMEOUT_MS_MAX);
  checkCount(answerTimeoutMs, "limits.answerTimeoutMs", 1, TIMEOUT_MS_MAX);
  if (rate !== null && !(rate.requestsPerSecond > 0 && rate.burst >= 1)) {
    throw invalidLimit("limits.rate needs requestsPerSecond above 0 and a burst of 1 or more.");
  }
  const largest = largestBody(checked);
  if (checked.bodyBytesPerUser < largest || checked.bodyBytesAtOnce < checked.bodyBytesPerUser) {
    throw invalidLimit(
      `limits.bodyBytesPerUser must be ${largest} or more, so that the largest body fits, and limits.bodyBytesAtOnce no less than that.`,
    );
  }
  return checked;
}

function withDefaults(limits: ServerLimits, guarded: boolean): CheckedLimits {
  const bodies = {
    bodyBytesMax: limits.bodyBytesMax ?? MIB,
    bodyValuesMax: limits.bodyValuesMax ?? 200_000,
    contentBytesMax: limits.contentBytesMax ?? 16 * MIB,
    contentPartsMax: limits.contentPartsMax ?? 1000,
    importBytesMax: limits.importBytesMax ?? 16 * MIB,
    uploadBytesMax: limits.uploadBytesMax ?? 100 * MIB,
    importEntriesMax: limits.importEntriesMax ?? 10_000,
  };
  // Four of the largest bodies for each user, so that raising one limit does not require to raise the other.
  const bodyBytesPerUser = limits.bodyBytesPerUser ?? Math.max(64 * MIB, 4 * largestBody(bodies));
  const answerBytesPerUser = limits.answerBytesPerUser ?? 32 * MIB;
  return {
    ...bodies,
    answerBytesPerUser,
    answerBytesAtOnce: limits.answerBytesAtOnce ?? 4 * answerBytesPerUser,
    heavyAtOnce: limits.heavyAtOnce ?? 4,
    answerTimeoutMs: limits.answerTimeoutMs ?? 60_000,
    bodyBytesPerUser,
    bodyBytesAtOnce: limits.bodyBytesAtOnce ?? 3 * bodyBytesPerUser,
    streamsPerUser: limits.streamsPerUser ?? 20,
    storedSessionsPerUser:
      limits.storedSessionsPerUser === undefined ? (guarded ? 10_000 : null) : limits.storedSessionsPerUser,
    storedBytesPerUser:
      limits.storedBytesPerUser === undefined ? (guarded ? 2 * GIB : null) : limits.storedBytesPerUser,
    maxRunsPerUser: limits.maxRunsPerUser ?? 10,
    maxWaiting: limits.maxWaiting ?? 10_000,
    urlCharactersMax: limits.urlCharactersMax ?? 16_384,
    headersTimeoutMs: limits.headersTimeoutMs ?? 10_000,
    requestTimeoutMs: limits.requestTimeoutMs ?? 120_000,
    rate: limits.rate === undefined ? (guarded ? RATE_DEFAULT : null) : limits.rate,
  };
}

function largestBody(limits: Pick<CheckedLimits, "bodyBytesMax" | "contentBytesMax" | "importBytesMax">): number {
  return Math.max(limits.bodyBytesMax, limits.contentBytesMax, limits.importBytesMax);
}

function invalidLimit(message: string): SessionError {
  return new SessionError("INVALID_OPTION", message);
}
