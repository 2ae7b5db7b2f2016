import { bodyOf, type Entry, isNode } from "../../session/log/entry.ts";
import { SessionConflictError, SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { createHeader, type Lineage, type SessionHeader } from "../../session/log/header.ts";
import { isCwd } from "../../session/id.ts";
import type { CreateOptions, SessionStore } from "../../session/store.ts";
import { canonicalJson } from "../../stores/doctor/log-digest.ts";
import type { ForeignDraft, ForeignHeader, FormatName } from "./foreign-format.ts";
import { digest, foreignSessionId } from "./foreign-id.ts";
import type { ForeignLog } from "./foreign-log.ts";
import { noteFor } from "./foreign-note.ts";

/** Into which store, and for whom, sessions are imported. */
export interface ImportTarget {
  readonly store: SessionStore;
  /** Whose sessions they become (default: nobody's). */
  readonly userId: string | null;
  /** Whether what they spent counts in sums (default true). */
  readonly counts?: boolean;
  /** Says what would become of them, and stores nothing. */
  readonly dryRun?: boolean;
  /** What the store is to refuse, where the sessions come in by a request. */
  readonly limits?: Pick<CreateOptions, "maxOpenPerUser" | "variablesBytesMax"> & { readonly entriesMax: number };
}

/** How often an append is tried again because someone else was faster. */
const TRIES_MAX = 20;

/**
 * One foreign session in a store, as far as it has been read.
 *
 * - Its first entries make the session; the header's `inherited` says so of them. Those that come later carry the stamp.
 * - Entries that are there already are passed over, so that an import can be repeated. One that has changed since, as an
 *   answer that was read before it was whole, stands beside the old one, and what follows hangs on it.
 * - The session's leaf follows the file only while nobody has gone on with the session here.
 */
export class StoredLog {
  readonly sessionId: string;
  /** How many entries this import has added. */
  added = 0;
  /** What became of the session: made, added to, or as it was. */
  outcome: "new" | "grown" | "same" | "deleted" = "same";
  readonly #target: ImportTarget;
  readonly #format: FormatName;
  readonly #log: ForeignLog;
  #head: SessionHead | null = null;
  /** What the session holds already, by id, when the import found it there. */
  #known: Map<string, string> | null = null;
  /** The ids of entries that have changed, with those of the new ones. */
  readonly #changed = new Map<string, string>();
  #count = 0;
  /** Where the file's own leaf is. */
  #leafId: string | null = null;

  constructor(target: ImportTarget, format: FormatName, log: ForeignLog) {
    this.#target = target;
    this.#format = format;
    this.#log = log;
    this.sessionId = foreignSessionId(target.userId, format, log.header.foreignId);
  }

  /** Stores what the log has become since the last time. */
  async store(): Promise<void> {
    if (this.outcome === "deleted") return;
    const drafts = this.#log.take();
    this.#checkCount(drafts.length);
    if (this.#head === null && !(await this.#find())) await this.#create(drafts);
    else if (drafts.length > 0) await this.#append(drafts);
  }

  #checkCount(count: number): void {
    this.#count += count;
    const { entriesMax = Number.POSITIVE_INFINITY } = this.#target.limits ?? {};
    if (this.#count > entriesMax)
      throw new SessionError(
        "TOO_LARGE",
        `The file has more than the ${entriesMax} entries that may be imported at once.`,
      );
  }

  /** Whether the session is there already. */
  async #find(): Promise<boolean> {
    const { store } = this.#target;
    this.#head = await store.head(this.sessionId);
    if (this.#head === null) return false;
    this.#known = new Map();
    for await (const entry of store.read(this.sessionId)) this.#known.set(entry.id, fingerprint(entry));
    return true;
  }

  async #create(drafts: readonly ForeignDraft[]): Promise<void> {
    try {
      const header = this.#header(drafts);
      const options = { entries: drafts, ...createLimits(this.#target) };
      if (this.#target.dryRun !== true) this.#head = await this.#target.store.create(header, options);
    } catch (error) {
      // It was deleted here, and can be brought back; or another import has just made it.
      if (!(error instanceof SessionError) || error.code !== "SESSION_EXISTS") throw error;
      if (await this.#find()) await this.#append(drafts);
      else this.outcome = "deleted";
      return;
    }
    this.outcome = "new";
    this.added += drafts.length;
    for (const draft of drafts) this.#follow(draft);
  }

  #header(drafts: readonly ForeignDraft[]): SessionHeader {
    const { header, createdAt } = this.#log;
    const { userId, counts = true } = this.#target;
    return createHeader({
      id: this.sessionId,
      createdAt,
      userId,
      cwd: isCwd(header.cwd) ? header.cwd : null,
      ...this.#lineage(header),
      metadata: noteFor(this.#format, header),
      inherited: { entries: drafts.length, counts },
    });
  }

  /** Where it came from; its parents are sessions of the same user's, whatever the file names. */
  #lineage({ lineage, parentForeignId }: ForeignHeader): { readonly lineage?: Lineage } {
    const forked = { operator: this.#format, kind: "op_fork", extras: [] } as const;
    const said = lineage ?? (parentForeignId === undefined ? null : { ...forked, parents: [parentForeignId] });
    if (said === null) return {};
    const idOf = (parent: string): string => foreignSessionId(this.#target.userId, this.#format, parent);
    return { lineage: { ...said, parents: said.parents.map(idOf) } };
  }

  async #append(drafts: readonly ForeignDraft[]): Promise<void> {
    const fresh = drafts.flatMap((draft) => this.#freshOf(draft));
    if (fresh.length === 0) return;
    const { store } = this.#target;
    for (let tries = 1; ; tries++) {
      const head = tries === 1 ? this.#head : await store.head(this.sessionId);
      if (head === null) {
        this.outcome = "deleted";
        return;
      }
      // Whoever goes on here has moved the leaf; then the file's moves are not followed.
      const followed = head.leafId === this.#leafId;
      const entries = fresh.filter(({ type }) => followed || type !== "leaf");
      try {
        if (this.#target.dryRun !== true) this.#head = await this.#write(entries, head.version);
        this.added += entries.length;
        if (this.outcome === "same") this.outcome = "grown";
        for (const draft of fresh) this.#follow(draft);
        return;
      } catch (error) {
        if (!(error instanceof SessionConflictError) || tries === TRIES_MAX) throw error;
      }
    }
  }

  async #write(drafts: readonly ForeignDraft[], expectedVersion: number): Promise<SessionHead> {
    const stamped = drafts.map((draft) => ({ inherited: true as const, ...draft }));
    const { variablesBytesMax } = this.#target.limits ?? {};
    const guard = variablesBytesMax === undefined ? {} : { guard: { variablesBytesMax } };
    const options = { verbatim: true, expectedVersion, ...guard };
    return (await this.#target.store.append(this.sessionId, stamped, options)).head;
  }

  /** What must be added for a draft: itself, nothing where it is there, or a new version of it. */
  #freshOf(draft: ForeignDraft): ForeignDraft[] {
    const moved = this.#moved(draft);
    const known = this.#known?.get(draft.id);
    if (known === undefined) return [moved];
    const print = fingerprint(moved);
    this.#follow(moved);
    if (known === print || !isNode(moved) || moved.type === "custom") return [];
    const id = `${draft.id}~${print.slice(0, 8)}`;
    const { parentId, timestamp } = moved;
    const back = { type: "leaf", targetId: parentId, id: `${id}.leaf`, timestamp, parentId: draft.id } as const;
    const version = { ...withoutUsage(moved), id };
    this.#changed.set(draft.id, id);
    if (!this.#known?.has(id)) return [back, version];
    for (const each of [back, version]) this.#follow(each);
    return [];
  }

  /** A draft whose parent or target may have changed. */
  #moved(draft: ForeignDraft): ForeignDraft {
    if (this.#changed.size === 0) return draft;
    const moved: Record<string, unknown> = { ...draft };
    for (const field of ["parentId", "targetId", "firstKeptEntryId"]) {
      const id = moved[field];
      if (typeof id === "string") moved[field] = this.#changed.get(id) ?? id;
    }
    return moved as unknown as ForeignDraft;
  }

  /** Moves the file's own leaf. */
  #follow(draft: ForeignDraft): void {
    if (draft.type === "leaf") this.#leafId = draft.targetId;
    else if (isNode(draft) && draft.parentId === this.#leafId) this.#leafId = draft.id;
  }
}

function createLimits({ limits }: ImportTarget): Pick<CreateOptions, "maxOpenPerUser" | "variablesBytesMax"> {
  if (limits === undefined) return {};
  const { entriesMax: _entriesMax, ...others } = limits;
  return others;
}

function fingerprint(entry: Entry | ForeignDraft): string {
  return digest(canonicalJson(bodyOf(entry)));
}

/** What was spent on an answer counts with its first version. */
function withoutUsage(draft: ForeignDraft): ForeignDraft {
  if (draft.type !== "message" || draft.message.role !== "assistant") return draft;
  const { usage: _usage, cost: _cost, ...message } = draft.message;
  return { ...draft, message };
}
