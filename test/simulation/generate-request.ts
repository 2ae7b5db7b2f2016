import type { EntryDraft, SessionStatus } from "../../src/session/log/entry.ts";
import { createHeader, type SessionHeader } from "../../src/session/log/header.ts";
import type { AppendOptions, SessionQuery, SessionStore } from "../../src/session/store.ts";
import type { AppendRequest, Request } from "./request.ts";
import type { SeededRandom } from "./seeded-random.ts";

const SESSIONS = ["s0", "s1", "s2", "s3", "s4", "s5", "s6"] as const;
const USERS = ["user:bob", "__proto__", "ann"] as const;
const DIRECTORIES = ["/one", "/two"] as const;
const STATUSES: readonly SessionStatus[] = ["active", "suspended", "closed", "expired"];
const WORDS = ["apple", "Birne", "cherry pie", "re:", "ÄÖ", "quince", "🍇", "x"] as const;
const CHECKPOINTS = ["c0", "c1", "c2", "c3"] as const;
const LEASES = ["l0", "l1", "l2"] as const;

/** Generates random requests. They depend only on the seed and the model, so the same seed always gives the same requests. */
export class RequestGenerator {
  readonly #random: SeededRandom;
  readonly #model: SessionStore;
  /** Earlier appends, to be retried. */
  readonly #earlier: AppendRequest[] = [];
  /** The ids of the live sessions. */
  #live: readonly string[] = [];
  #ids = 0;

  constructor(random: SeededRandom, model: SessionStore) {
    this.#random = random;
    this.#model = model;
  }

  /** Requests that create the first sessions. */
  first(): Request[] {
    return SESSIONS.slice(0, 3).map((id) => ({ kind: "create", header: this.#header(id), entries: [] }));
  }

  async next(): Promise<Request> {
    const random = this.#random;
    this.#live = (await this.#model.list()).items.map(({ header }) => header.id).sort();
    const draw = random.weighted<() => Promise<Request> | Request>([
      [3, () => this.#create()],
      [12, () => this.#append()],
      [2, () => this.#retry()],
      [2, () => this.#burst()],
      [3, () => this.#fork()],
      [1.5, () => ({ kind: "delete", session: this.#session() })],
      [1.5, () => ({ kind: "undelete", session: this.#session() })],
      [0.5, () => ({ kind: "purge" })],
      [0.5, () => ({ kind: "reopen" })],
      [1, () => ({ kind: "idle" })],
      [1, () => ({ kind: "head", session: this.#session() })],
      [3, () => this.#read()],
      [2, async () => this.#lookUp(this.#session())],
      [3, () => ({ kind: random.pick(["list", "list", "count"]), query: this.#query() })],
      [2, () => ({ kind: "search", text: this.#searchText(), query: this.#query() })],
      [1, () => this.#aggregate()],
      [3, () => this.#checkpoint()],
      [3, () => this.#lease()],
    ]);
    return draw();
  }

  /** The id of a live session in nine of ten cases, otherwise any id. */
  #session(): string {
    return this.#random.pick(this.#live.length > 0 && this.#random.chance(0.9) ? this.#live : SESSIONS);
  }

  /** The id of no live session in nine of ten cases, otherwise any id. */
  #freeId(): string {
    const free = SESSIONS.filter((id) => !this.#live.includes(id));
    return this.#random.pick(free.length > 0 && this.#random.chance(0.9) ? free : SESSIONS);
  }

  #time(): string {
    return new Date(Date.UTC(2024, 0, 1 + this.#random.below(3)) + this.#random.below(20) * 1000).toISOString();
  }

  #header(id: string): SessionHeader {
    const random = this.#random;
    return createHeader({
      id,
      createdAt: this.#time(),
      userId: random.chance(0.2) ? null : random.pick(USERS),
      cwd: random.chance(0.3) ? null : random.pick(DIRECTORIES),
      ...(random.chance(0.2) && {
        lineage: { parents: [this.#session()], operator: "derive", kind: "op_merge", extras: [] },
      }),
      metadata: { n: random.below(3) },
    });
  }

  async #create(): Promise<Request> {
    const id = this.#freeId();
    const entries = this.#random.chance(0.4) ? await this.#drafts(id, 4) : [];
    const limit = this.#random.chance(0.2) ? { maxOpenPerUser: 1 + this.#random.below(2) } : {};
    return { kind: "create", header: this.#header(id), entries, ...limit };
  }

  async #append(): Promise<Request> {
    const request = await this.#appendTo(this.#session());
    this.#earlier.push(request);
    return { kind: "append", ...request };
  }

  async #appendTo(session: string): Promise<AppendRequest> {
    const random = this.#random;
    const drafts = await this.#drafts(session, random.chance(0.1) ? 70 : 4);
    const version = (await this.#model.head(session))?.version ?? 0;
    const guard: NonNullable<AppendOptions["guard"]> = {
      ...(random.chance(0.1) && { status: random.pick([...STATUSES, ["active", "suspended"] as const]) }),
      ...(random.chance(0.1) && { maxTurns: random.below(20) }),
    };
    const lease = random.chance(0.08) ? random.pick(LEASES) : undefined;
    return {
      session,
      drafts,
      options: {
        ...(random.chance(0.15) && { expectedVersion: Math.max(0, version - random.below(2)) }),
        ...(random.chance(0.2) && { onto: await this.#entryId(session) }),
        ...(Object.keys(guard).length > 0 && { guard }),
      },
      ...(lease !== undefined && { lease }),
    };
  }

  /** Retries an earlier append; in some cases with other content. */
  async #retry(): Promise<Request> {
    const earlier = this.#earlier.length === 0 ? await this.#appendTo("s0") : this.#random.pick(this.#earlier);
    if (this.#random.chance(0.7)) return { kind: "append", ...earlier };
    const drafts = earlier.drafts.map((draft) => (draft.id === undefined ? draft : this.#message(draft.id)));
    return { kind: "append", ...earlier, drafts };
  }

  /** Concurrent appends to one or two sessions, either all unconditional or all expecting the same version. */
  async #burst(): Promise<Request> {
    const random = this.#random;
    const sessions = random.chance(0.5) ? [this.#session()] : [this.#session(), this.#session()];
    const conditional = random.chance(0.4);
    const appends: AppendRequest[] = [];
    for (let i = 0; i < 4; i++) {
      const session = random.pick(sessions);
      const version = (await this.#model.head(session))?.version ?? 0;
      const drafts = Array.from({ length: 1 + random.below(3) }, () => this.#message(this.#newId()));
      appends.push({ session, drafts, options: conditional ? { expectedVersion: version } : {} });
    }
    return { kind: "burst", appends };
  }

  async #fork(): Promise<Request> {
    const random = this.#random;
    const source = this.#session();
    const header = this.#header(this.#freeId());
    const named = { ...header, forkedFrom: { sessionId: source, entryId: null, version: 0, branchName: "side" } };
    const options = {
      ...(random.chance(0.6) && { at: await this.#entryId(source) }),
      ...(random.chance(0.1) && { maxForks: 1 }),
    };
    return { kind: "fork", source, header: random.chance(0.3) ? named : header, options };
  }

  #read(): Request {
    const random = this.#random;
    const options = {
      ...(random.chance(0.5) && { after: random.below(30) - 1 }),
      ...(random.chance(0.5) && { before: random.below(80) }),
      ...(random.chance(0.3) && { limit: random.below(12) }),
      ...(random.chance(0.4) && { reverse: true }),
    };
    return { kind: "read", session: this.#session(), options };
  }

  async #lookUp(session: string): Promise<Request> {
    const entry = (await this.#entryId(session)) ?? "nothing";
    return { kind: this.#random.pick(["entry", "path"]), session, entry };
  }

  #query(): SessionQuery {
    const random = this.#random;
    return {
      ...(random.chance(0.3) && { userId: random.pick(USERS) }),
      ...(random.chance(0.2) && { cwd: random.pick(DIRECTORIES) }),
      ...(random.chance(0.3) && {
        status: random.chance(0.5) ? random.pick(STATUSES) : (["active", "closed"] as const),
      }),
      ...(random.chance(0.2) && { parentId: this.#session() }),
      ...(random.chance(0.1) && { deleted: true }),
      ...(random.chance(0.4) && { limit: 1 + random.below(3) }),
    };
  }

  #searchText(): string {
    const random = this.#random;
    return random.weighted([
      [4, random.pick(WORDS.filter((word) => word !== "re:"))],
      [1, `${random.pick(["apple", "quince"])} ${random.pick(["birne", "s1"])}`],
      [1, '"cherry pie"'],
      [1, "re:app.e|quin"],
    ]);
  }

  #aggregate(): Request {
    const random = this.#random;
    const keys = (["day", "model", "user"] as const).filter(() => random.chance(0.5));
    const userId = random.chance(0.3) ? { userId: random.pick(USERS) } : {};
    return { kind: "aggregate", query: { groupBy: keys, ...userId } };
  }

  async #checkpoint(): Promise<Request> {
    const random = this.#random;
    const id = random.pick(CHECKPOINTS);
    const kind = random.weighted([
      [4, "saveCheckpoint" as const],
      [2, "checkpoints" as const],
      [1, "loadCheckpoint" as const],
      [1, "deleteCheckpoint" as const],
    ]);
    if (kind === "checkpoints") return { kind, session: this.#session() };
    if (kind !== "saveCheckpoint") return { kind, id };
    const sessionId = this.#session();
    const head = await this.#model.head(sessionId);
    const position = { version: head?.version ?? 0, leafId: head?.leafId ?? null };
    const metadata = { note: random.pick(WORDS) };
    const checkpoint = { id, sessionId, ...position, createdAt: this.#time(), parentCheckpointId: null, metadata };
    return { kind, checkpoint };
  }

  #lease(): Request {
    const random = this.#random;
    const name = random.pick(LEASES);
    return random.weighted<Request>([
      [3, { kind: "lease", session: this.#session(), run: random.pick(["r0", "r1"]), name }],
      [1, { kind: "renew", name }],
      [1, { kind: "release", name }],
      [1, { kind: "leaseOf", session: this.#session() }],
    ]);
  }

  async #drafts(session: string, most: number): Promise<EntryDraft[]> {
    const drafts: EntryDraft[] = [];
    for (let left = 1 + this.#random.below(most); left > 0; left--) drafts.push(await this.#draft(session, drafts));
    return drafts;
  }

  async #draft(session: string, before: readonly EntryDraft[]): Promise<EntryDraft> {
    const random = this.#random;
    const id = random.chance(0.02) ? `e${random.below(Math.max(1, this.#ids))}` : this.#newId();
    const timestamp = this.#time();
    const own = before.length > 0 && random.chance(0.3) ? (random.pick(before).id ?? null) : null;
    const target = own ?? (await this.#entryId(session));
    const known = target ?? "nothing";
    return random.weighted<EntryDraft>([
      [12, this.#message(id)],
      [3, { id, timestamp, type: "leaf", targetId: target }],
      [1, { id, timestamp, type: "label", targetId: known, label: random.pick(["here", null]) }],
      [1, { id, timestamp, type: "session_info", name: random.pick(WORDS) }],
      [1, { id, timestamp, type: "status", status: random.pick(["active", "active", ...STATUSES]) }],
      [
        1,
        { id, timestamp, type: "run", runId: random.pick(["r0", "r1"]), phase: random.pick(["started", "finished"]) },
      ],
      [1, { id, timestamp, type: "variables", set: { [random.pick(WORDS)]: random.below(9) }, unset: ["x"] }],
      [1, { id, timestamp, type: "model_change", provider: "p", modelId: random.pick(["m0", "m1"]) }],
      [1, { id, timestamp, type: "compaction", summary: "all", firstKeptEntryId: known, tokensBefore: 7, cost: 0.25 }],
      [0.1, { id, timestamp, type: "compaction_undone", targetId: known }],
      [0.5, { id, timestamp, type: "custom", customType: "t", data: { "": [null, -1.5, "\u0000\u2028"] } }],
      [0.5, { id, timestamp, type: "custom_message", customType: "t", content: random.pick(WORDS), display: true }],
    ]);
  }

  #message(id: string): EntryDraft {
    const random = this.#random;
    const timestamp = this.#time();
    const content = Array.from({ length: 1 + random.below(3) }, () => random.pick(WORDS)).join(" ");
    if (random.chance(0.5)) return { id, timestamp, type: "message", message: { role: "user", content } };
    const usage = { inputTokens: random.below(9), outputTokens: 1, totalTokens: 10 };
    const model = random.chance(0.5) ? { provider: "p", model: random.pick(["m0", "m1"]) } : {};
    // Sums of quarters are exact in any order.
    const cost = random.below(8) / 4;
    return { id, timestamp, type: "message", message: { role: "assistant", content, usage, cost, ...model } };
  }

  #newId(): string {
    this.#ids += 1;
    return this.#random.chance(0.02) ? `__proto__${this.#ids}` : `e${this.#ids}`;
  }

  /** The id of an entry of the session; in rare cases an unknown id or null. */
  async #entryId(session: string): Promise<string | null> {
    const random = this.#random;
    const version = (await this.#model.head(session))?.version ?? 0;
    if (version === 0 || random.chance(0.04)) return random.pick([null, "nowhere"]);
    const after = random.below(version) - 1;
    for await (const entry of this.#model.read(session, { after, limit: 1 })) return entry.id;
    return null;
  }
}
