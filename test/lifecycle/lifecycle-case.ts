import { expect } from "vitest";
import type { SessionError } from "../../src/session/errors.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import type { SessionStore } from "../../src/session/store.ts";
import type { SessionEvent, SessionEventType } from "../../src/lifecycle/session-events.ts";
import type { SessionManagerInit } from "../../src/lifecycle/manager-options.ts";
import { SessionManager } from "../../src/lifecycle/session-manager.ts";

/** The parts of a lifecycle case. */
export interface LifecycleContext {
  readonly store: SessionStore;
  /** Creates a manager on the store; its clock differs from the system's only by `advance`. */
  manager(init?: Partial<SessionManagerInit>): SessionManager;
  /** Advances the clock of all managers. */
  advance(seconds: number): void;
}

/** A promise of the manager on every store. */
export interface LifecycleCase {
  readonly name: string;
  run(context: LifecycleContext): Promise<void>;
}

export function contextOn(store: SessionStore): LifecycleContext {
  let offsetMs = 0;
  return {
    store,
    manager: (init = {}) => new SessionManager({ store, clock: () => new Date(Date.now() + offsetMs), ...init }),
    advance: (seconds) => {
      offsetMs += seconds * 1000;
    },
  };
}

/** The whole contents of a store, to compare before and after. */
export async function contentsOf(store: SessionStore): Promise<unknown> {
  const heads = [
    ...(await store.list({ limit: 1000 })).items,
    ...(await store.list({ deleted: true, limit: 1000 })).items,
  ];
  const sessions = await Promise.all(
    heads.map(async (head) => ({
      head,
      entries: await entriesOf(store, head.header.id),
      checkpoints: await store.listCheckpoints(head.header.id),
      lease: await store.leaseOf(head.header.id),
    })),
  );
  return sessions.sort((a, b) => (a.head.header.id < b.head.header.id ? -1 : 1));
}

export async function entriesOf(store: SessionStore, id: string): Promise<Entry[]> {
  const entries: Entry[] = [];
  for await (const entry of store.read(id)) entries.push(entry);
  return entries;
}

const TYPES: readonly SessionEventType[] = [
  "created",
  "resumed",
  "suspended",
  "turnAdded",
  "checkpointCreated",
  "restored",
  "forked",
  "merged",
  "closed",
  "parked",
  "expired",
];

/** Records all events of a manager from now on. */
export function eventsOf(manager: SessionManager): SessionEvent[] {
  const events: SessionEvent[] = [];
  for (const type of TYPES) manager.events.on(type, (event) => events.push(event));
  return events;
}

/** The error of a refused call; checks that the store is unchanged. */
export async function refusal(store: SessionStore, call: () => PromiseLike<unknown>): Promise<SessionError> {
  const before = await contentsOf(store);
  const outcome = await settle(call);
  expect(outcome).toHaveProperty("error");
  expect(await contentsOf(store)).toEqual(before);
  return (outcome as { error: SessionError }).error;
}

/** The outcome of a call. */
export async function settle(
  call: () => PromiseLike<unknown>,
): Promise<{ readonly value: unknown } | { readonly error: unknown }> {
  try {
    return { value: await call() };
  } catch (error) {
    return { error };
  }
}

/** Counts the outcomes: a value as `ok`, an error by its code. */
export async function outcomesOf(calls: readonly PromiseLike<unknown>[]): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const result of await Promise.allSettled(calls)) {
    const key = result.status === "fulfilled" ? "ok" : String((result.reason as SessionError).code ?? result.reason);
    counts[key] = (counts[key] ?? 0) + 1;
  }
  return counts;
}

/** A promise with its resolve function. */
export function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}
