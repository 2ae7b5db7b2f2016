/** An entry of the model, reduced to its type and one value. */
export interface ModelDraft {
  readonly id: string;
  readonly type: "message" | "leaf" | "label" | "session_info" | "status";
  readonly value: string | null;
  readonly timestamp: string;
}

/** Which sessions to list. */
export interface ModelQuery {
  readonly userId?: string;
  readonly status?: "active" | "closed";
  readonly parentId?: string;
  readonly deleted?: true;
}

/** One operation on a store. */
export type Request =
  | {
      readonly kind: "append";
      readonly session: string;
      readonly drafts: readonly ModelDraft[];
      readonly options: {
        readonly onto?: string | null;
        readonly below?: string | null;
        readonly expectedVersion?: number;
      };
      /** Whether to append under the lease that the process has acquired. */
      readonly leased: boolean;
    }
  | { readonly kind: "create" | "delete" | "undelete" | "head"; readonly session: string }
  | { readonly kind: "lease" | "renew" | "release" | "leaseOf"; readonly session: string }
  | { readonly kind: "fork"; readonly session: string; readonly to: string; readonly at: string | null | undefined }
  | { readonly kind: "purge" }
  | { readonly kind: "read"; readonly session: string; readonly range: ModelRange }
  | { readonly kind: "entry"; readonly session: string; readonly entry: string }
  | { readonly kind: "list"; readonly query: ModelQuery; readonly limit: number }
  | { readonly kind: "count"; readonly query: ModelQuery }
  | { readonly kind: "search"; readonly text: string }
  | CheckpointRequest;

/** One operation on checkpoints. */
export type CheckpointRequest =
  | { readonly kind: "checkpoints"; readonly session: string }
  | { readonly kind: "saveCheckpoint"; readonly checkpoint: ModelCheckpoint }
  | { readonly kind: "loadCheckpoint" | "deleteCheckpoint"; readonly id: string };

interface ModelRange {
  readonly after: number;
  readonly before: number;
  readonly limit: number;
  readonly reverse: boolean;
}

interface ModelCheckpoint {
  readonly id: string;
  readonly session: string;
  readonly createdAt: string;
  readonly note: string;
}

/** The result of an operation: a list of values, or the code of the error. */
export type Outcome = readonly (string | number | boolean | null)[] | string;

interface ModelEntry extends ModelDraft {
  readonly parentId: string | null;
}

interface ModelSession {
  readonly id: string;
  readonly forkedFrom: string | null;
  log: readonly ModelEntry[];
  deleted: boolean;
  /** The process that holds the lease, and the serial number of the lease; null without a lease. */
  lease: { readonly process: number; readonly serial: number } | null;
}

const MATCHES_MAX = 3;

/** The user of a session. */
export function userOf(id: string): string {
  return Number(id.slice(1)) % 2 === 0 ? "ann" : "bob";
}

/** The time of creation of a session. */
export function createdAtOf(id: string): string {
  return `2024-01-01T00:00:0${id.slice(1)}.000Z`;
}

/** The run id that a process uses for its leases. */
export function runOf(process: number): string {
  return `run-${process}`;
}

/** A simple model of a store: each session is a list of entries, which is copied for forks and scanned for searches. */
export class StoreModel {
  readonly #sessions = new Map<string, ModelSession>();
  readonly #checkpoints = new Map<string, ModelCheckpoint>();
  /** The serial number of the last lease that each process has acquired and not released, by process and session. */
  readonly #held = new Map<string, number>();
  #leases = 0;

  /** The expected outcome of a request from a process. */
  ask(process: number, request: Request): Outcome {
    switch (request.kind) {
      case "create":
        return this.#create(request.session);
      case "append":
        return this.#append(process, request);
      case "fork":
        return this.#fork(request.session, request.to, request.at);
      case "delete":
      case "undelete":
        return this.#setDeleted(request.session, request.kind === "delete");
      case "purge":
        return this.#purge();
      case "head":
        return this.#head(request.session);
      case "read":
        return this.#read(request.session, request.range);
      case "entry": {
        const log = this.#live(request.session)?.log ?? [];
        const found = log.find((entry) => entry.id === request.entry);
        return [found === undefined ? null : line(log, found)];
      }
      case "list":
        return this.#matching(request.query).map(({ id }) => id);
      case "count":
        return [this.#matching(request.query).length];
      case "search":
        return this.#search(request.text.split(" "));
      case "lease":
      case "renew":
      case "release":
      case "leaseOf":
        return this.#lease(process, request.kind, request.session);
      default:
        return this.#checkpoint(request);
    }
  }

  versionOf(id: string): number {
    return this.#live(id)?.log.length ?? 0;
  }

  /** The id of an entry of a session for any number; one number in six gives an unknown id. */
  idAt(id: string, n: number): string {
    const { log } = this.#live(id) ?? { log: [] };
    return n % 6 === 5 ? "nowhere" : (log[n % log.length]?.id ?? "nowhere");
  }

  /** A session whose lease a process has acquired and not released, although it may have lost it; null if there is none. */
  heldBy(process: number, n: number): string | null {
    const keys = [...this.#held.keys()].filter((key) => key.startsWith(`${process} `));
    return keys[n % keys.length]?.split(" ")[1] ?? null;
  }

  /** Models a process that reopens its store: it forgets its leases, which stay live in the store. */
  reopen(process: number): void {
    for (const key of this.#held.keys()) if (key.startsWith(`${process} `)) this.#held.delete(key);
  }

  #create(id: string): Outcome {
    if (this.#sessions.has(id)) return "SESSION_EXISTS";
    this.#sessions.set(id, { id, forkedFrom: null, log: [], deleted: false, lease: null });
    return [0];
  }

  #append(process: number, request: Extract<Request, { kind: "append" }>): Outcome {
    const { drafts, options, leased } = request;
    const session = this.#live(request.session);
    if (session === undefined) return "SESSION_NOT_FOUND";
    const stored = drafts.map((draft) => session.log.find((entry) => entry.id === draft.id));
    if (drafts.some((draft, i) => stored[i] !== undefined && !same(draft, stored[i]))) return "ENTRY_EXISTS";
    if (stored.every((entry) => entry !== undefined)) return answer(session.log, drafts);
    if (leased && !this.#holds(process, session)) return "LEASE_LOST";
    const { expectedVersion } = options;
    if (expectedVersion !== undefined && expectedVersion !== session.log.length) return "CONFLICT";
    const start = startOf(session.log, options);
    if ("refused" in start) return start.refused;
    const log = [...session.log];
    let { cursor } = start;
    for (const [index, draft] of drafts.entries()) {
      if (stored[index] !== undefined) continue;
      const own = log.find((entry) => entry.id === draft.id);
      if (own !== undefined && !same(draft, own)) return "ENTRY_EXISTS";
      if (own !== undefined) continue;
      const { type, value } = draft;
      if ((type === "label" || type === "leaf") && value !== null && !log.some((entry) => entry.id === value))
        return "UNKNOWN_ENTRY";
      if (type === "leaf" && value !== null && notANode(log, value) !== null) return "INVALID_ENTRY";
      log.push({ ...draft, parentId: cursor });
      if (type === "message") cursor = draft.id;
      if (type === "leaf") cursor = value;
    }
    session.log = log;
    return answer(log, drafts);
  }

  #fork(sourceId: string, id: string, at: string | null | undefined): Outcome {
    const source = this.#live(sourceId);
    if (source === undefined) return "SESSION_NOT_FOUND";
    const index = typeof at === "string" ? source.log.findIndex((entry) => entry.id === at) : -1;
    if (typeof at === "string" && index < 0) return "UNKNOWN_ENTRY";
    if (this.#sessions.has(id)) return "SESSION_EXISTS";
    const log = at === undefined ? source.log : source.log.slice(0, index + 1);
    this.#sessions.set(id, { id, forkedFrom: sourceId, log, deleted: false, lease: null });
    return [log.length, leafOf(log), log.at(-1)?.id ?? null];
  }

  #setDeleted(id: string, deleted: boolean): Outcome {
    const session = this.#sessions.get(id);
    if (session === undefined || session.deleted === deleted) return [false];
    session.deleted = deleted;
    session.lease = null;
    return [true];
  }

  #purge(): Outcome {
    const purged = [...this.#sessions.values()].filter(({ deleted }) => deleted);
    for (const { id } of purged) {
      this.#sessions.delete(id);
      for (const [checkpointId, { session }] of this.#checkpoints)
        if (session === id) this.#checkpoints.delete(checkpointId);
      // A new session with the same id may start its lease tokens again.
      for (const key of this.#held.keys()) if (key.endsWith(` ${id}`)) this.#held.delete(key);
    }
    return [purged.length];
  }

  #head(id: string): Outcome {
    const session = this.#live(id);
    if (session === undefined) return [null];
    const { log } = session;
    const messages = log.filter(({ type }) => type === "message");
    return [log.length, leafOf(log), nameOf(session), statusOf(session), messages.length, modifiedAtOf(session)];
  }

  #read(id: string, { after, before, limit, reverse }: ModelRange): Outcome {
    const log = this.#live(id)?.log ?? [];
    const inRange = log.filter((_, seq) => seq > after && seq < before).map((entry) => line(log, entry));
    return (reverse ? inRange.reverse() : inRange).slice(0, limit);
  }

  #matching({ userId, status, parentId, deleted }: ModelQuery): ModelSession[] {
    return [...this.#sessions.values()]
      .filter((session) => session.deleted === (deleted === true))
      .filter(({ id }) => userId === undefined || userOf(id) === userId)
      .filter((session) => status === undefined || statusOf(session) === status)
      .filter(({ forkedFrom }) => parentId === undefined || forkedFrom === parentId)
      .sort((a, b) => (sortKeyOf(a) < sortKeyOf(b) ? 1 : -1));
  }

  #search(words: readonly string[]): Outcome {
    return this.#matching({}).flatMap((session) => {
      const messages = session.log.filter(({ type }) => type === "message");
      const texts = [session.id, nameOf(session) ?? "", ...messages.map(({ value }) => value ?? "")];
      if (!words.every((word) => texts.some((text) => text.includes(word)))) return [];
      const matches = messages.filter(({ value }) => words.some((word) => value?.includes(word)));
      return [session.id, ...matches.slice(0, MATCHES_MAX).map(({ id }) => id)];
    });
  }

  #lease(process: number, kind: "lease" | "renew" | "release" | "leaseOf", id: string): Outcome {
    const session = this.#live(id);
    const key = `${process} ${id}`;
    if (kind === "leaseOf") return [session?.lease == null ? null : runOf(session.lease.process)];
    if (kind === "lease") {
      if (session === undefined) return "SESSION_NOT_FOUND";
      if (session.lease !== null) return "SESSION_BUSY";
      session.lease = { process, serial: ++this.#leases };
      this.#held.set(key, this.#leases);
      return [runOf(process)];
    }
    const holds = session !== undefined && this.#holds(process, session);
    if (kind === "renew") return holds ? [true] : "LEASE_LOST";
    if (holds) session.lease = null;
    this.#held.delete(key);
    return [true];
  }

  #checkpoint(request: CheckpointRequest): Outcome {
    if (request.kind === "checkpoints") {
      if (this.#live(request.session) === undefined) return [];
      const own = [...this.#checkpoints.values()].filter(({ session }) => session === request.session);
      return own.sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1)).map(({ id, note }) => `${id} ${note}`);
    }
    if (request.kind === "saveCheckpoint") {
      const { checkpoint } = request;
      if (this.#live(checkpoint.session) === undefined) return "SESSION_NOT_FOUND";
      const stored = this.#checkpoints.get(checkpoint.id);
      if (stored !== undefined && JSON.stringify(stored) !== JSON.stringify(checkpoint)) return "CHECKPOINT_EXISTS";
      this.#checkpoints.set(checkpoint.id, checkpoint);
      return [true];
    }
    const stored = this.#checkpoints.get(request.id);
    const seen = stored !== undefined && this.#live(stored.session) !== undefined;
    if (request.kind === "loadCheckpoint") return [seen ? `${stored.id} ${stored.note}` : null];
    return [seen && this.#checkpoints.delete(request.id)];
  }

  #holds(process: number, { id, lease }: ModelSession): boolean {
    return lease !== null && lease.serial === this.#held.get(`${process} ${id}`);
  }

  #live(id: string): ModelSession | undefined {
    const session = this.#sessions.get(id);
    return session?.deleted === false ? session : undefined;
  }
}

/** The parent of the first draft of an append. */
function startOf(
  log: readonly ModelEntry[],
  { onto, below }: Extract<Request, { kind: "append" }>["options"],
): { readonly cursor: string | null } | { readonly refused: string } {
  const leaf = leafOf(log);
  const given = below ?? onto;
  const refused = given == null ? null : notANode(log, given);
  if (refused !== null) return { refused };
  if (below !== undefined) return { cursor: below === null || pathTo(log, leaf).includes(below) ? leaf : below };
  return { cursor: onto === undefined ? leaf : onto };
}

function pathTo(log: readonly ModelEntry[], leaf: string | null): string[] {
  const path: string[] = [];
  for (let at = leaf; at !== null; at = log.find(({ id }) => id === at)?.parentId ?? null) path.push(at);
  return path;
}

function leafOf(log: readonly ModelEntry[]): string | null {
  let leaf: string | null = null;
  for (const { id, type, parentId, value } of log) {
    if (type === "leaf") leaf = value;
    if (type === "message" && parentId === leaf) leaf = id;
  }
  return leaf;
}

function notANode(log: readonly ModelEntry[], id: string): string | null {
  const entry = log.find((each) => each.id === id);
  if (entry === undefined) return "UNKNOWN_ENTRY";
  return entry.type === "message" ? null : "INVALID_ENTRY";
}

function nameOf({ log }: ModelSession): string | null {
  return log.findLast(({ type }) => type === "session_info")?.value ?? null;
}

function statusOf({ log }: ModelSession): string {
  return log.findLast(({ type }) => type === "status")?.value ?? "active";
}

function modifiedAtOf({ id, log }: ModelSession): string {
  return log.findLast(({ type }) => type === "message")?.timestamp ?? createdAtOf(id);
}

function sortKeyOf(session: ModelSession): string {
  return `${modifiedAtOf(session)} ${session.id}`;
}

function same(a: ModelDraft, b: ModelDraft): boolean {
  return a.type === b.type && a.value === b.value;
}

function answer(log: readonly ModelEntry[], drafts: readonly ModelDraft[]): Outcome {
  return [log.length, ...drafts.map(({ id }) => line(log, log.find((entry) => entry.id === id) as ModelEntry))];
}

function line(log: readonly ModelEntry[], entry: ModelEntry): string {
  return `${log.indexOf(entry)} ${entry.id} on ${entry.parentId}`;
}
