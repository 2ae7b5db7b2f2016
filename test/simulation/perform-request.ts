import { SessionError } from "../../src/session/errors.ts";
import type { SessionHead } from "../../src/session/log/fold.ts";
import type { Entry } from "../../src/session/log/entry.ts";
import type { AppendOptions, Lease, SessionQuery, SessionStore } from "../../src/session/store.ts";
import type { AppendRequest, QueryRequest, Request } from "./request.ts";

const END_OF_TIME = "9999-12-31T23:59:59.999Z";
const TTL_MS = 10 * 60 * 1000;

/** The result of a request: a value, or the code of an error. Without times of the clock and lease tokens, which differ per store. */
export type Answer = { readonly value: unknown } | { readonly refused: string };

/** The leases acquired in one store, by name, and the last token of each session. */
export class LeaseRegistry {
  readonly held = new Map<string, Lease>();
  readonly tokens = new Map<string, number>();
}

/** Performs one request on a store. */
export async function performRequest(store: SessionStore, request: Request, leases: LeaseRegistry): Promise<Answer> {
  try {
    return { value: await callStore(store, request, leases) };
  } catch (error) {
    if (!(error instanceof SessionError)) throw error;
    // If two reasons prevent the creation of a session, a store may report either.
    const hasSeveralReasons = request.kind === "create" || request.kind === "fork";
    return { refused: hasSeveralReasons ? "cannot be created" : error.code };
  }
}

/** Performs one append on a store. */
export async function performAppend(
  store: SessionStore,
  request: AppendRequest,
  leases: LeaseRegistry,
): Promise<Answer> {
  return performRequest(store, { kind: "append", ...request }, leases);
}

async function callStore(store: SessionStore, request: Request, leases: LeaseRegistry): Promise<unknown> {
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
      // A session created with the id of a purged one may start with lower tokens.
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
      throw new Error(`A ${request.kind} is not a request to one store.`);
    default:
      return performQuery(store, request);
  }
}

async function performQuery(store: SessionStore, request: QueryRequest): Promise<unknown> {
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
  leases: LeaseRegistry,
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

function optionsOf({ session, options, lease }: AppendRequest, leases: LeaseRegistry): AppendOptions {
  if (lease === undefined) return options;
  const held = leases.held.get(lease);
  // A lease that was never acquired, or of another session, counts as lost: token 0 is never live.
  const leaseToken = held?.sessionId === session ? held.token : 0;
  return { ...options, guard: { ...options.guard, leaseToken } };
}

function headOf(head: SessionHead | null): Omit<SessionHead, "updatedAt"> | null {
  if (head === null) return null;
  const { updatedAt: _, ...rest } = head;
  return rest;
}
