import { checkArgument, isIterable, isObject } from "../check-arguments.ts";
import { LineageError, show } from "../errors.ts";
import type { Lineage } from "../log/header.ts";
import { addCost, addUsage, NO_USAGE, type Usage, withoutUsage } from "../usage.ts";

/** Anything with a lineage: a session, a run, a header, a row of an export. */
export type SessionLike = { readonly id: string } & ({ readonly lineage: Lineage } | Lineage);

/** An edge from a session to one that was made from it. */
export interface LineageEdge {
  readonly parent: string;
  readonly child: string;
}

const IDS_SHOWN_MAX = 10;

/**
 * All ancestors of a session, nearest first; at the same distance in the order in which they are named as parents.
 *
 * A parent that is not among the sessions is skipped. The cost is proportional to the number of sessions and parents.
 *
 * @throws {LineageError} if the id is not among the sessions.
 */
export function ancestors<S extends SessionLike>(sessions: Iterable<S>, id: string): S[] {
  const byId = indexOf(sessions, "ancestors");
  const seen = new Set([id]);
  // Breadth-first: an array is also iterated over items that are added during the iteration, so it serves as a queue.
  const walk = [known(byId, id)];
  for (const session of walk) {
    for (const parentId of parentsOf(session)) {
      const parent = byId.get(parentId);
      if (parent === undefined || seen.has(parentId)) continue;
      seen.add(parentId);
      walk.push(parent);
    }
  }
  return walk.slice(1);
}

/**
 * All descendants of a session, depth first: each before its own descendants, and children in the order given.
 *
 * A session that can be reached on several paths appears where the first path reaches it. The cost is proportional to the number
 * of sessions and parents.
 *
 * @throws {LineageError} if the id is not among the sessions.
 */
export function descendants<S extends SessionLike>(sessions: Iterable<S>, id: string): S[] {
  const byId = indexOf(sessions, "descendants");
  const children = childrenOf(byId.values());
  const seen = new Set<string>();
  const found: S[] = [];
  const stack = [known(byId, id)];
  for (let session = stack.pop(); session !== undefined; session = stack.pop()) {
    if (seen.has(session.id)) continue;
    seen.add(session.id);
    found.push(session);
    const next = children.get(session.id) ?? [];
    for (let i = next.length - 1; i >= 0; i--) stack.push(next[i] as S);
  }
  return found.slice(1);
}

/**
 * Checks that every parent is among the sessions and that there is no cycle.
 *
 * @throws {LineageError} that names the session and its missing parent, or the sessions of a cycle.
 */
export function validateAcyclic(sessions: Iterable<SessionLike>): void {
  const byId = indexOf(sessions, "validateAcyclic");
  const open = new Map<string, number>();
  for (const session of byId.values()) {
    const parents = parentsOf(session);
    const missing = parents.find((parentId) => !byId.has(parentId));
    if (missing !== undefined) {
      throw new LineageError(session.id, `Session ${show(session.id)} has a parent ${show(missing)} that is missing.`);
    }
    open.set(session.id, parents.length);
  }
  const children = childrenOf(byId.values());
  const done = [...byId.values()].filter(({ id }) => open.get(id) === 0);
  for (const session of done) {
    open.delete(session.id);
    for (const child of children.get(session.id) ?? []) {
      const left = (open.get(child.id) as number) - 1;
      open.set(child.id, left);
      if (left === 0) done.push(child);
    }
  }
  if (open.size > 0) throw cycleAmong(byId, open);
}

/** All edges from parents to children, in the order given; also if the parent is not among the sessions. */
export function edges(sessions: Iterable<SessionLike>): LineageEdge[] {
  const found: LineageEdge[] = [];
  for (const session of indexOf(sessions, "edges").values()) {
    for (const parent of parentsOf(session)) found.push({ parent, child: session.id });
  }
  return found;
}

/** The lineage of anything that has one. */
export function lineageOf(session: SessionLike): Lineage {
  return "lineage" in session ? session.lineage : session;
}

/**
 * Indexes the sessions by id, in the order given; of duplicates, the first.
 *
 * @throws {SessionError} `INVALID_OPTION` that names the call, unless they are sessions or rows of an export.
 */
export function indexOf<S extends SessionLike>(sessions: Iterable<S>, call: string): Map<string, S> {
  const wanted = "a list of sessions";
  checkArgument(isIterable(sessions), sessions, call, wanted);
  const byId = new Map<string, S>();
  for (const session of sessions) {
    checkArgument(isObject(session) && Array.isArray(lineageOf(session)?.parents), session, call, wanted);
    if (!byId.has(session.id)) byId.set(session.id, session);
  }
  return byId;
}

/** Without duplicates: a session merged with itself has one parent. */
function parentsOf(session: SessionLike): readonly string[] {
  const { parents } = lineageOf(session);
  return parents.length < 2 ? parents : [...new Set(parents)];
}

function childrenOf<S extends SessionLike>(sessions: Iterable<S>): Map<string, S[]> {
  const children = new Map<string, S[]>();
  for (const session of sessions) {
    for (const parent of parentsOf(session)) {
      const siblings = children.get(parent);
      if (siblings === undefined) children.set(parent, [session]);
      else siblings.push(session);
    }
  }
  return children;
}

function known<S extends SessionLike>(byId: ReadonlyMap<string, S>, id: string): S {
  const session = byId.get(id);
  if (session === undefined) throw new LineageError(id, `There is no session ${show(id)} among those given.`);
  return session;
}

/** Each remaining session has a remaining parent, so following parents must reach a session twice. */
function cycleAmong(byId: ReadonlyMap<string, SessionLike>, left: ReadonlyMap<string, number>): LineageError {
  const position = new Map<string, number>();
  const path: string[] = [];
  let id = left.keys().next().value as string;
  while (!position.has(id)) {
    position.set(id, path.length);
    path.push(id);
    id = parentsOf(byId.get(id) as SessionLike).find((parentId) => left.has(parentId)) as string;
  }
  const cycle = path.slice(position.get(id)).reverse();
  const shown = cycle.slice(0, IDS_SHOWN_MAX).map(show).join(", ");
  const rest = cycle.length > IDS_SHOWN_MAX ? ` and ${cycle.length - IDS_SHOWN_MAX} more` : "";
  return new LineageError(id, `The lineage has a cycle, in which each is made from the one before: ${shown}${rest}.`);
}

/** A session with the spending of the operation that created it. */
export type SpendingSession = SessionLike & {
  readonly usage?: Usage | null;
  readonly cost?: number | null;
  /** The part of the spending that the session from which this one was recovered counts, too. */
  readonly recovered?: RecoveredSpending | null;
};

/** The spending of earlier claims of a run. The session from which this one was recovered counts it as well. */
export interface RecoveredSpending {
  readonly sessionId: string;
  readonly usage: Usage | null;
  readonly cost: number | null;
}

/**
 * The total spending of a session and its ancestors, each operation counted once.
 *
 * A merge spends nothing itself: its usage is the sum of its parents', which are counted themselves. An ancestor that is not
 * among the sessions is not counted.
 *
 * @throws {LineageError} if the id is not among the sessions.
 */
export function lineageUsage(sessions: Iterable<SpendingSession>, id: string): { usage: Usage; cost: number } {
  const byId = indexOf(sessions, "lineageUsage");
  const above = ancestors(byId.values(), id);
  let usage = NO_USAGE;
  let cost = 0;
  for (const session of [byId.get(id) as SpendingSession, ...above]) {
    if (lineageOf(session).kind === "op_merge") continue;
    const { recovered = null } = session;
    const isTwice = recovered !== null && byId.has(recovered.sessionId);
    usage = addUsage(usage, withoutUsage(session.usage ?? NO_USAGE, isTwice ? recovered.usage : null));
    cost = addCost(cost, Math.max(0, (session.cost ?? 0) - (isTwice ? (recovered.cost ?? 0) : 0)));
  }
  return { usage, cost };
}
