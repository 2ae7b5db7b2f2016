import assert from "node:assert/strict";
import type { Entry } from "../../session/log/entry.ts";
import { type SessionErrorCode, SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { createHeader, type SessionHeader } from "../../session/log/header.ts";
import type { ReadOptions, SessionQuery, SessionStore } from "../../session/store.ts";

const PAGES_MAX = 10_000;

/** Creates a session with an id. */
export async function make(store: SessionStore, id: string, init: Partial<SessionHeader> = {}): Promise<SessionHead> {
  return store.create(createHeader({ ...init, id }));
}

/** Collects the items of an iterable. */
export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const collected: T[] = [];
  for await (const item of items) collected.push(item);
  return collected;
}

/** The entries of a session. */
export async function entriesOf(store: SessionStore, sessionId: string, options: ReadOptions = {}): Promise<Entry[]> {
  return collect(store.read(sessionId, options));
}

/** The ids of a session's entries. */
export async function idsOf(store: SessionStore, sessionId: string, options: ReadOptions = {}): Promise<string[]> {
  return (await entriesOf(store, sessionId, options)).map(({ id }) => id);
}

/** The head of a session; fails if there is none. */
export async function headOf(store: SessionStore, sessionId: string): Promise<SessionHead> {
  const head = await store.head(sessionId);
  assert.ok(head !== null, `there is no session ${sessionId}`);
  return head;
}

/** The ids of the runs that are open in a session. */
export async function openIn(store: SessionStore, sessionId: string): Promise<string[]> {
  return (await headOf(store, sessionId)).openRuns.map(({ runId }) => runId);
}

/** The ids of all pages of a listing. */
export async function listAll(store: SessionStore, query: SessionQuery = {}): Promise<string[]> {
  const ids: string[] = [];
  let cursor: string | null = null;
  for (let pages = 0; pages < PAGES_MAX; pages++) {
    const page: Awaited<ReturnType<SessionStore["list"]>> = await store.list(
      cursor === null ? query : { ...query, cursor },
    );
    ids.push(...page.items.map(({ header }) => header.id));
    if (page.next === null) return ids;
    cursor = page.next;
  }
  assert.fail(`the listing has no end after ${PAGES_MAX} pages`);
}

/** Asserts that a call rejects with a `SessionError` that has this code and these fields. */
export async function refuses(
  call: Promise<unknown> | (() => unknown),
  code: SessionErrorCode,
  fields: Record<string, unknown> = {},
): Promise<void> {
  let result: unknown;
  try {
    result = await (typeof call === "function" ? call() : call);
  } catch (error) {
    if (!(error instanceof SessionError)) throw error;
    assert.equal(error.code, code, `refused with ${error.code} (${error.message}), not with ${code}`);
    for (const [field, value] of Object.entries(fields)) {
      assert.deepEqual((error as unknown as Record<string, unknown>)[field], value, `the error's ${field}`);
    }
    return;
  }
  assert.fail(`not refused with ${code}, but answered ${JSON.stringify(result)?.slice(0, 200)}`);
}

/** Asserts that a call does not change a session. */
export async function unchanged(store: SessionStore, sessionId: string, call: () => Promise<unknown>): Promise<void> {
  const before = { head: await store.head(sessionId), entries: await entriesOf(store, sessionId) };
  await call();
  const after = { head: await store.head(sessionId), entries: await entriesOf(store, sessionId) };
  assert.deepEqual(after, before);
}

/** Awaits a promise with a timeout. */
export async function within<T>(promise: Promise<T>, what: string, timeoutMs = 10_000): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new assert.AssertionError({ message: `${what} did not happen in ${timeoutMs} ms` })),
      timeoutMs,
    );
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Polls until a condition holds, with a timeout. */
export async function until(holds: () => Promise<boolean>, what: string, timeoutMs = 10_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!(await holds())) {
    if (Date.now() > deadline) assert.fail(`${what} did not happen in ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
