import { SessionError } from "../../src/session/errors.ts";
import type { SessionHead } from "../../src/session/log/fold.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import type { AppendOptions, Lease, SessionQuery, SessionStore } from "../../src/session/store.ts";
import type { AppendRequest, LookRequest, Request } from "./request.ts";

const END_OF_TIME = "9999-12-31T23:59:59.999Z";
const TTL_MS = 10 * 60 * 1000;

/** What was answered: a value, or the code of a refusal. Clocks and lease tokens are left out of it. */
export type Answer = { readonly value: unknown } | { readonly refused: string };

/** The leases that were taken in one store, by name, with the last token of each session. */
export class LeaseBook {
  readonly held = new Map<string, Lease>();
  readonly tokens = new Map<string, number>();
}

/** Asks a store one thing. */
export async function askStore(store: SessionStore, request: Request, leases: LeaseBook): Promise<Answer> {
  try {
    return { value: await perform(store, request, leases) };
  } catch (error) {
    if (!(error instanceof SessionError)) throw error;
    // A session that cannot be made for two reasons may be refused for either.
    const several = request.kind === "create" || request.kind === "fork";
    return { refused: several ? "cannot be made" : error.code };
  }
}

/** Asks for one append. */
export async function askAppend(store: SessionStore, request: AppendRequest, leases: LeaseBook): Promise<Answer> {
  return askStore(store, { kind: "append", ...request }, leases);
}

async function perform(store: SessionStore, request: Request, leases: LeaseBook): Promise<unknown> {
  switch (request.kind) {
    case "create": {
      const { header, entries, maxOpenPerUser } = request;
      return headOf(await store.create(header, { entries, ...(maxOpenPerUser !== undefined && { maxOpenPerUser }) }));
    }
    case "append": {
      const result = await store.append(request.session, request.drafts, optionsOf(request, leases));
      return { version: result.version, entries: result.entries, head: headOf(result.head) };
    }
    case "fork":
      return headOf(await store.fork(request.source, request.header, request.options));
    case "delete":
    case "undelete":
      return store[request.kind](request.session);
    case "purge":
      // A session made anew under a purged one's id may count its tokens anew.
      leases.held.clear();
      leases.tokens.clear();
      return store.purge(END_OF_TIME);
    case "idle":
      return (await store.listExpired(END_OF_TIME, 100)).map(({ header }) => header.id).sort();
    case "saveCheckpoint":
      return (await store.saveCheckpoint(request.checkpoint)) ?? null;
    case "loadCheckpoint":
    case "deleteCheckpoint":
      return store[request.kind](request.id);
    case "lease":
    case "renew":
    case "release":
      return performLease(store, request, leases);
    case "burst":
    case "reopen":
      throw new Error(`A ${request.kind} is not asked of one store.`);
    default:
      return look(store, request);
  }
}

async function look(store: SessionStore, request: LookRequest): Promise<unknown> {
  switch (request.kind) {
    case "head":
      return headOf(await store.head(request.session));
    case "leaseOf":
      return (await store.leaseOf(request.session))?.runId ?? null;
    case "checkpoints":
      return store.listCheckpoints(request.session);
    case "read": {
      const entries: Entry[] = [];
      for await (const entry of store.read(request.session, request.options)) entries.push(entry);
      return entries;
    }
    case "entry":
      return store.getEntry(request.session, request.entry);
    case "path":
      return store.path(request.session, request.entry);
    case "list":
      return listAll(store, request.query);
    case "count":
      return store.count(request.query);
    case "search":
      return (await store.search(request.text, request.query)).map(({ head, matches }) => [headOf(head), matches]);
    case "aggregate":
      return store.aggregate(request.query);
  }
}

async function performLease(
  store: SessionStore,
  request: Extract<Request, { kind: "lease" | "renew" | "release" }>,
  leases: LeaseBook,
): Promise<unknown> {
  if (request.kind === "lease") {
    const lease = await store.lease(request.session, request.run, TTL_MS);
    const grew = lease.token > (leases.tokens.get(request.session) ?? 0);
    leases.tokens.set(request.session, lease.token);
    leases.held.set(request.name, lease);
    return { runId: lease.runId, grew };
  }
  const lease = leases.held.get(request.name);
  await (request.kind === "renew" ? lease?.renew(TTL_MS) : lease?.release());
  return lease?.runId ?? null;
}

async function listAll(store: SessionStore, query: SessionQuery): Promise<unknown[]> {
  const pages: unknown[] = [];
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const page = await store.list({ ...query, ...(cursor !== undefined && { cursor }) });
    pages.push(page.items.map(headOf), page.damaged);
    cursor = page.next;
  }
  return pages;
}

function optionsOf({ session, options, lease }: AppendRequest, leases: LeaseBook): AppendOptions {
  if (lease === undefined) return options;
  const held = leases.held.get(lease);
  // A lease that was never taken stands for one that was lost long ago; one of another session would mean nothing here.
  const leaseToken = held?.sessionId === session ? held.token : 0;
  return { ...options, guard: { ...options.guard, leaseToken } };
}

function headOf(head: SessionHead | null): Omit<SessionHead, "updatedAt"> | null {
  if (head === null) return null;
  const { updatedAt: _, ...rest } = head;
  return rest;
}
