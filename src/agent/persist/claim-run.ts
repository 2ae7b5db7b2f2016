import { hostname } from "node:os";
import { describeOpen } from "../../session/log/append-guard.ts";
import type { Entry, EntryDraft, EntryOf } from "../../session/log/entry.ts";
import { SessionBusyError, SessionError, show } from "../../session/errors.ts";
import { isOwn, type SessionHead } from "../../session/log/fold.ts";
import { type OpenRun, requestIdOf } from "../../session/log/open-runs.ts";
import type { Guard, SessionStore } from "../../session/store.ts";
import type { LogAccess } from "./log-access.ts";
import type { RunAgent } from "./persist-option.ts";

/** How often a run is claimed in a row without a new row before it counts as failed. */
const CLAIMS_MAX = 5;

/** Facts that change what is to be done about a run. */
const RUN_FACTS: ReadonlySet<string> = new Set(["run", "run_parked", "cancel"]);

/** Which run claims a session. */
export interface ClaimRequest {
  readonly runId: string;
  /** The version of the log that whoever claims knew; left out where that does not matter. */
  readonly version?: number | undefined;
  /** Who answers, as the start records it. */
  readonly answers?: RunAgent | undefined;
}

/** A session that a run has to itself. */
export interface Claim {
  readonly head: SessionHead;
  /** What must hold for the append that begins the run: it is still to be run. A cancel that came meanwhile counts. */
  readonly guard: Guard;
  /** What the run writes before its first row: the end of runs whose process is gone. */
  readonly ends: readonly EntryDraft[];
  /** What it writes after its input and these ends; how many entries precede it is for the caller to add. */
  readonly started: EntryDraft & { readonly type: "run" };
  /** Whether no claim of the run is on record. */
  readonly isFirst: boolean;
  /** The entry that asked for it, where it begins here and was asked for. */
  readonly request: EntryOf<"run_request"> | null;
}

/**
 * Claims a session for a run: the only way to begin one or to go on with it. `begin` writes the ends, the run's input and
 * that it started, in one append with the claim's guard; what it throws lets go of the session.
 *
 * - Of several who claim, one has the session: the others are refused with `SESSION_BUSY` while it does.
 * - What another did about a run since the caller looked is a `CONFLICT`.
 * - A run that waits for an answer, or that was asked for before and is due, goes first: `SESSION_BUSY`.
 * - A run that parked with a local sandbox on another machine goes on there only: `NO_SANDBOX`.
 * - A run that is cancelled before its start is on record does not begin, and one that was asked for and is over does not
 *   begin again: `CONFLICT`.
 * - A run that was cancelled, or that got nowhere five times in a row, is ended here: `RUN_ENDED`.
 */
export async function claimRun<T>(
  access: LogAccess,
  { runId, version, answers }: ClaimRequest,
  begin: (claim: Claim) => Promise<T>,
): Promise<T> {
  await access.acquire();
  try {
    const head = await access.head();
    const store = access.store as SessionStore;
    await checkKnown(store, head, version);
    const mine = head.openRuns.find((run) => run.runId === runId);
    if (mine === undefined) await checkNew(store, head, runId);
    checkTurn(head, runId, mine);
    if (mine !== undefined) await checkHost(store, head, mine);
    const ends = head.openRuns.flatMap((run) => (run.state === "started" && run !== mine ? endOf(run) : []));
    const end = mine === undefined ? null : endOfClaims(mine);
    if (end !== null) {
      await access.append([...ends, end.draft], { guard: access.guard });
      throw end.error;
    }
    const started = { type: "run", runId, phase: "started", claim: access.lease?.token ?? 0, ...answers } as const;
    const request = mine?.state === "requested" ? await readRequest(store, head.header.id, runId) : null;
    const guard = { ...access.guard, ...(mine === undefined ? {} : { openRun: runId }) };
    return await begin({ head, guard, ends, started, request, isFirst: mine === undefined });
  } catch (error) {
    await access.release(null).catch(() => {});
    throw error;
  }
}

/** @throws {SessionError} `CONFLICT` for a run that was asked for in this session, and was cancelled or has ended. */
async function checkNew(store: SessionStore, { header }: SessionHead, runId: string): Promise<void> {
  const request = await readRequest(store, header.id, runId);
  if (request === null || !isOwn(header, request, request.seq)) return;
  throw new SessionError("CONFLICT", `Run ${show(runId)} of session ${header.id} is over; use another runId.`);
}

/** Of several that found the same run, the one that has the session first goes on with it; the others would repeat it. */
async function checkKnown(store: SessionStore, head: SessionHead, version: number | undefined): Promise<void> {
  if (version === undefined || version >= head.version) return;
  const { id } = head.header;
  for await (const entry of store.read(id, { after: version - 1 })) {
    if (!RUN_FACTS.has(entry.type) && !isHolders(entry)) continue;
    throw new SessionError(
      "CONFLICT",
      `Another run went on in session ${id} meanwhile; read it again with resumeSession.`,
    );
  }
}

/** Whether only who had a run can have said it: with the last of a lease, perhaps, when another had looked already. */
function isHolders(entry: Entry): boolean {
  if (entry.type !== "message") return false;
  const { message } = entry;
  return message.role === "tool" || (message.role === "assistant" && message.toolCalls !== undefined);
}

/** Runs that have begun go on before others begin, and those that were asked for begin in the order of the log. */
function checkTurn({ header, openRuns }: SessionHead, runId: string, mine: OpenRun | undefined): void {
  const begun = mine !== undefined && mine.state !== "requested";
  const now = new Date().toISOString();
  const isDue = ({ notBefore = "" }: OpenRun): boolean => notBefore <= now;
  const before = openRuns.slice(0, mine === undefined ? openRuns.length : openRuns.indexOf(mine));
  const first =
    openRuns.find((run) => run.runId !== runId && (run.state === "parked" || run.state === "answered")) ??
    (begun ? undefined : before.find((run) => run.state === "requested" && isDue(run)));
  if (first !== undefined) throw new SessionBusyError(header.id, describeOpen(first));
}

async function checkHost(store: SessionStore, { header: { id } }: SessionHead, run: OpenRun): Promise<void> {
  const host = await hostElsewhere(store, id, run);
  if (host === null) return;
  throw new SessionError(
    "NO_SANDBOX",
    `Run ${run.runId} of session ${id} has its files on the machine ${show(host)}; go on with it there, or fork the session.`,
  );
}

/** The machine that has the local sandbox of a parked run; null where any will do. */
export async function parkedHost(
  store: SessionStore,
  sessionId: string,
  { runId, state }: OpenRun,
): Promise<string | null> {
  if (state !== "parked" && state !== "answered") return null;
  for await (const entry of store.read(sessionId, { reverse: true })) {
    if (entry.type === "run_parked" && entry.runId === runId) return entry.host ?? null;
  }
  return null;
}

/** The same, where it is another machine than this one. */
export async function hostElsewhere(store: SessionStore, sessionId: string, run: OpenRun): Promise<string | null> {
  const host = await parkedHost(store, sessionId, run);
  return host === hostname() ? null : host;
}

function endOfClaims(run: OpenRun): { readonly draft: EntryDraft; readonly error: SessionError } | null {
  const exhausted = (run.claims ?? 0) >= CLAIMS_MAX;
  if (run.cancelled !== true && !exhausted) return null;
  const why = exhausted ? `was begun ${CLAIMS_MAX} times without getting anywhere` : "was cancelled";
  return { draft: endOf(run), error: new SessionError("RUN_ENDED", `Run ${run.runId} ${why}; start another one.`) };
}

/** The end of a run that never said how it ended: whoever has the session is alone with it. */
export function endOf({ runId, cancelled }: OpenRun): EntryDraft {
  const phase = cancelled === true ? "cancelled" : "failed";
  return { type: "run", runId, phase, error: "The run was interrupted." };
}

/** The entry that asked for a run; null for one that began without. */
export async function readRequest(
  store: SessionStore,
  sessionId: string,
  runId: string,
): Promise<EntryOf<"run_request"> | null> {
  const entry = await store.getEntry(sessionId, requestIdOf(runId));
  return entry?.type === "run_request" ? entry : null;
}
