import { hostname } from "node:os";
import { describeOpen, isCallOrResult } from "../../session/log/append-guard.ts";
import type { EntryDraft, EntryOf } from "../../session/log/entry.ts";
import { SessionBusyError, SessionError, show } from "../../session/errors.ts";
import { isOwn, type SessionHead } from "../../session/log/fold.ts";
import { type OpenRun, requestIdOf } from "../../session/log/open-runs.ts";
import { hasBegun, isReleased, runBefore } from "../../session/log/run-fold.ts";
import type { AppendOptions, SessionStore } from "../../session/store.ts";
import type { LogAccess } from "./log-access.ts";
import type { RunAgent } from "./persist-option.ts";

/** How often a run is claimed in a row without a new row before it is recorded as failed. */
const CLAIMS_MAX = 5;

/** Facts that affect who may claim a run. */
const RUN_FACTS: ReadonlySet<string> = new Set(["run", "run_parked", "cancel"]);

/** A run that claims a session. */
export interface ClaimRequest {
  readonly runId: string;
  /** The version of the log that the claimant knew; absent if it does not matter. */
  readonly version?: number | undefined;
  /** The agent that answers, for the `started` record. */
  readonly answers?: RunAgent | undefined;
  /** Whether the head was read before the lease was taken: then the log must not have grown since. */
  readonly early?: boolean;
}

/** A claimed session, held by one run. */
export interface Claim {
  readonly head: SessionHead;
  /**
   * How the run is started: only if it is still open, which detects a cancel in the meantime, and the log is as it was
   * read.
   */
  readonly condition: Pick<AppendOptions, "guard" | "expectedVersion">;
  /** The entries that the run appends before its first row: the ends of runs whose process has died. */
  readonly ends: readonly EntryDraft[];
  /** The `started` entry, appended after the input and these ends; the caller adds how many entries precede it. */
  readonly started: EntryDraft & { readonly type: "run" };
  /** Whether no earlier claim of the run is recorded. */
  readonly isFirst: boolean;
  /** The request, if the run was requested and starts here. */
  readonly request: EntryOf<"run_request"> | null;
}

/**
 * Claims a session for a run: the only way to start or continue one. `begin` writes the ends, the run's input and its
 * start in one append with the claim's guard; if it throws, the session is released.
 *
 * - Only one of several claimants gets the session; the others are refused with `SESSION_BUSY` until it is released.
 * - `CONFLICT` if another process changed a run since the caller read the log.
 * - `SESSION_BUSY` if another run goes first: one that waits for an answer, or one that was requested earlier and is
 *   due.
 * - `NO_SANDBOX` if the run parked with a local sandbox on another machine; it can only continue there.
 * - `CONFLICT` if the run was cancelled before its start was recorded, or if it was requested and has already ended.
 * - `RUN_ENDED` if the run was cancelled, or was claimed five times in a row without progress; its end is recorded
 *   here.
 */
export async function claimRun<T>(
  access: LogAccess,
  { runId, version, answers, early = false }: ClaimRequest,
  begin: (claim: Claim) => Promise<T>,
): Promise<T> {
  await access.acquire();
  try {
    const head = await access.head();
    const unchanged = early ? { expectedVersion: head.version } : {};
    const store = access.store as SessionStore;
    await checkKnown(store, head, version);
    const mine = head.openRuns.find((run) => run.runId === runId);
    if (mine === undefined) await checkNew(store, head, runId);
    checkTurn(head, runId);
    if (mine !== undefined) await checkHost(store, head, mine);
    const ends = head.openRuns.flatMap((run) => (run.state === "started" && run !== mine ? endOf(run) : []));
    const end = mine === undefined ? null : endOfClaims(mine);
    if (end !== null) {
      await access.append([...ends, end.draft], { guard: access.guard, ...unchanged });
      throw end.error;
    }
    const started = { type: "run", runId, phase: "started", claim: access.lease?.token ?? 0, ...answers } as const;
    const request = mine !== undefined && !hasBegun(mine) ? await readRequest(store, head.header.id, runId) : null;
    const guard = { ...access.guard, ...(mine === undefined ? {} : { openRun: runId }) };
    return await begin({
      head,
      condition: { guard, ...unchanged },
      ends,
      started,
      request,
      isFirst: mine === undefined,
    });
  } catch (error) {
    await access.release(null).catch(() => {});
    throw error;
  }
}

/** @throws {SessionError} `CONFLICT` for a run that was requested in this session and was cancelled or has ended. */
async function checkNew(store: SessionStore, { header }: SessionHead, runId: string): Promise<void> {
  const request = await readRequest(store, header.id, runId);
  if (request === null || !isOwn(header, request, request.seq)) return;
  throw new SessionError("CONFLICT", `Run ${show(runId)} of session ${header.id} has ended; use another runId.`);
}

/**
 * Of several processes that found the same run, the first to get the session continues it; the others would repeat its
 * work.
 */
async function checkKnown(store: SessionStore, head: SessionHead, version: number | undefined): Promise<void> {
  if (version === undefined || version >= head.version) return;
  const { id } = head.header;
  for await (const entry of store.read(id, { after: version - 1 })) {
    // A holder may append at the end of its lease, after another process had read the log.
    if (!RUN_FACTS.has(entry.type) && !isCallOrResult(entry)) continue;
    throw new SessionError(
      "CONFLICT",
      `Another run continued session ${id} in the meantime; read it again with resumeSession.`,
    );
  }
}

/** Started runs continue before others start, and requested runs start in log order. */
function checkTurn({ header, openRuns }: SessionHead, runId: string): void {
  const first = runBefore(openRuns, runId, new Date().toISOString());
  if (first !== null) throw new SessionBusyError(header.id, describeOpen(first));
}

async function checkHost(store: SessionStore, { header: { id } }: SessionHead, run: OpenRun): Promise<void> {
  const host = await hostElsewhere(store, id, run);
  if (host === null) return;
  throw new SessionError(
    "NO_SANDBOX",
    `Run ${run.runId} of session ${id} has its files on the machine ${show(host)}; continue it there, or fork the session.`,
  );
}

/** The machine that has the local sandbox of a parked run; null if any machine can continue it. */
export async function parkedHost(
  store: SessionStore,
  sessionId: string,
  { runId, state }: Pick<OpenRun, "runId" | "state">,
): Promise<string | null> {
  if (!isReleased({ state })) return null;
  for await (const entry of store.read(sessionId, { reverse: true })) {
    if (entry.type === "run_parked" && entry.runId === runId) return entry.host ?? null;
  }
  return null;
}

/** As `parkedHost`, but null if it is this machine. */
export async function hostElsewhere(store: SessionStore, sessionId: string, run: OpenRun): Promise<string | null> {
  const host = await parkedHost(store, sessionId, run);
  return host === hostname() ? null : host;
}

function endOfClaims(run: OpenRun): { readonly draft: EntryDraft; readonly error: SessionError } | null {
  const exhausted = (run.claims ?? 0) >= CLAIMS_MAX;
  if (run.cancelled !== true && !exhausted) return null;
  const why = exhausted ? `was begun ${CLAIMS_MAX} times without any progress` : "was cancelled";
  const draft = exhausted ? { ...endOf(run), error: `The run ${why}.` } : endOf(run);
  return { draft, error: new SessionError("RUN_ENDED", `Run ${run.runId} ${why}; start another one.`) };
}

/** The end to record for a run whose process has died; the holder of the session records it. */
export function endOf({ runId, cancelled }: OpenRun): EntryDraft {
  const phase = cancelled === true ? "cancelled" : "failed";
  return { type: "run", runId, phase, error: "The run was interrupted." };
}

/** The entry that requested a run; null for a run that started without a request. */
export async function readRequest(
  store: SessionStore,
  sessionId: string,
  runId: string,
): Promise<EntryOf<"run_request"> | null> {
  const entry = await store.getEntry(sessionId, requestIdOf(runId));
  return entry?.type === "run_request" ? entry : null;
}
