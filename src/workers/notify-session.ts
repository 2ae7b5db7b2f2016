import { parkedHost, readRequest } from "../agent/persist/claim-run.ts";
import { agentOf, type DueRun } from "../lifecycle/runs/due-run.ts";
import type { SessionHead } from "../session/log/fold.ts";
import type { OpenRun } from "../session/log/open-runs.ts";
import { laterRun, nextRun } from "../session/log/run-fold.ts";
import type { SessionStore } from "../session/store.ts";
import type { RunQueue } from "./run-queue.ts";
import { readRunOrigin } from "./begin-run.ts";

/** The shortest delay before a lease is checked again, because clocks may differ. */
const LEASE_LOOK_MS_MIN = 250;

/** The runner name for all workers of one machine: runs bound to the machine are continued there. */
export function runnerOfHost(host: string): string {
  return `@${host}`;
}

/**
 * The runner to notify about a run: the requested agent or group (empty for any), or the machine to which the run is
 * bound.
 */
export async function runnerOf(store: SessionStore, head: SessionHead, run: OpenRun): Promise<string> {
  const request = await readRequest(store, head.header.id, run.runId);
  return runnerOfDue(store, { head, run, request, agent: await agentOf(store, head, run, request) });
}

/** The runner of a due run, which names its agent. */
export async function runnerOfDue(store: SessionStore, { head, run, request, agent: asked }: DueRun): Promise<string> {
  const host = await parkedHost(store, head.header.id, run);
  if (host !== null) return runnerOfHost(host);
  const named = request?.group ?? asked;
  if (named !== null || request !== null) return named ?? "";
  const { agent, group } = await readRunOrigin(store, head);
  return agent ?? group ?? "";
}

/** The options of `notifyNext`. */
export interface SessionNotifier {
  readonly store: SessionStore;
  readonly queue: RunQueue;
  /** The longest delay before a lease is checked again. */
  readonly leaseMs: number;
}

/**
 * Notifies the queue about the next run of a session: immediately if one is due, when the present lease ends, or when
 * the next run becomes due. `now: false` means that a check just found nothing to do immediately.
 */
export async function notifyNext(
  { store, queue, leaseMs }: SessionNotifier,
  sessionId: string,
  { now: atOnce = true }: { readonly now?: boolean } = {},
): Promise<void> {
  const head = await store.head(sessionId);
  if (head === null || head.openRuns.length === 0) return;
  const now = new Date();
  const lease = await store.leaseOf(sessionId);
  const due = nextRun(head.openRuns, now.toISOString());
  if (lease !== null) {
    const leftMs = Date.parse(lease.expiresAt) - now.getTime();
    const at = new Date(now.getTime() + Math.min(Math.max(leftMs, LEASE_LOOK_MS_MIN), leaseMs));
    return queue.notify(sessionId, { runner: await runnerOf(store, head, due ?? (head.openRuns[0] as OpenRun)), at });
  }
  if (due !== null) {
    // The lease that blocked the run may have ended between that check and this one.
    const at = atOnce ? {} : { at: new Date(now.getTime() + LEASE_LOOK_MS_MIN) };
    if (atOnce || head.status === "active")
      await queue.notify(sessionId, { runner: await runnerOf(store, head, due), ...at });
    return;
  }
  const next = laterRun(head.openRuns);
  if (next !== null) {
    await queue.notify(sessionId, { runner: await runnerOf(store, head, next), at: new Date(next.notBefore) });
  }
}
