import { bodyOf, type Entry, isNode } from "../../session/log/entry.ts";
import { SessionConflictError, SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { createHeader, type Lineage, type SessionHeader } from "../../session/log/header.ts";
import { isCwd } from "../../session/id.ts";
import type { CreateOptions, SessionStore } from "../../session/store.ts";
import { canonicalJson } from "../../stores/doctor/log-digest.ts";
import type { AssistantMessage } from "../../session/message.ts";
import { addCost, addUsage, NO_USAGE, type Usage } from "../../session/usage.ts";
import { firstVersionOf, VERSION_DIGITS, VERSION_MARK, withSpentBeside } from "./entry-version.ts";
import type { ForeignDraft, ForeignHeader, FormatName } from "./foreign-format.ts";
import { digest, foreignSessionId } from "./foreign-id.ts";
import type { ForeignLog } from "./foreign-log.ts";
import { noteFor } from "./foreign-note.ts";
import { usageBeyond } from "./usage-beyond.ts";

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

/** How many entries a file had so far, in all of its sessions. */
export interface EntryCount {
  entries: number;
}

/** How often an append is tried again because someone else was faster. */
const TRIES_MAX = 20;

/** What the session holds already of an entry. */
interface KnownEntry {
  readonly print: string;
  /** What a node hangs on; a fact hangs on nothing. */
  readonly parentId: string | null;
}

/** What was counted for an answer, in all of its versions. */
interface Spent {
  readonly usage: Usage;
  readonly cost: number;
}

/**
 * One foreign session in a store, as far as it has been read.
 *
 * - Its first entries make the session; the header's `inherited` says so of them. Those that come later carry the stamp.
 * - Entries that are there already are passed over, so that an import can be repeated.
 * - One that has changed since, as an answer that was read before it was whole, is added anew where the old one hangs, and so
 *   is all that hangs on it. The old ones are pruned, unless someone has gone on with the session here. What was spent counts
 *   once.
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
  /** What the session holds that this import has not added, by id. */
  readonly #known = new Map<string, KnownEntry>();
  /** The versions that were found of an entry beside the first one. */
  readonly #versions = new Map<string, string[]>();
  readonly #spent = new Map<string, Spent>();
  /** Entries of branches that were pruned. */
  readonly #hidden = new Set<string>();
  /** Whether someone has gone on with the session here, or has gone back in it. */
  #own = false;
  /** The ids of entries that stand for others, which were read differently before. */
  readonly #changed = new Map<string, string>();
  readonly #counted: EntryCount;
  /** Where imports have put the session's leaf. */
  #leafId: string | null = null;
  /** Where the file stands, by the ids of the entries here. */
  #fileLeafId: string | null = null;

  constructor(target: ImportTarget, format: FormatName, log: ForeignLog, counted: EntryCount = { entries: 0 }) {
    this.#counted = counted;
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

  /** Removes the session if this import made it and nobody has written to it since. */
  async undo(): Promise<void> {
    const made = this.outcome === "new" ? this.#head : null;
    if (made === null) return;
    const { store } = this.#target;
    if ((await store.head(this.sessionId))?.version !== made.version) return;
    if (await store.delete(this.sessionId)) await store.purge({ sessionId: this.sessionId });
    this.#head = null;
    this.outcome = "same";
    this.added = 0;
  }

  #checkCount(count: number): void {
    this.#counted.entries += count;
    const { entriesMax = Number.POSITIVE_INFINITY } = this.#target.limits ?? {};
    if (this.#counted.entries > entriesMax)
      throw new SessionError(
        "TOO_LARGE",
        `The file has more than the ${entriesMax} entries that may be imported at once.`,
      );
  }

  /** Whether the session is there already. What was added to it since the last look is known afterwards. */
  async #find(): Promise<boolean> {
    const { store } = this.#target;
    const after = (this.#head?.version ?? 0) - 1;
    this.#head = await store.head(this.sessionId);
    if (this.#head === null) return false;
    const { version, header } = this.#head;
    const imported = header.inherited?.entries ?? 0;
    for await (const entry of store.read(this.sessionId, { after, before: version }))
      this.#learn(entry, entry.inherited === true || entry.seq < imported);
    // A parent stands before its children.
    for (const [id, { parentId }] of this.#hidden.size === 0 ? [] : this.#known)
      if (parentId !== null && this.#hidden.has(parentId)) this.#hidden.add(id);
    return true;
  }

  #learn(entry: Entry, imported: boolean): void {
    const { id } = entry;
    if (entry.type === "prune") this.#hidden.add(entry.targetId);
    if (entry.type === "leaf" || isNode(entry)) {
      if (imported) this.#follow(entry);
      else this.#own = true;
    }
    this.#known.set(id, { print: fingerprint(entry), parentId: isNode(entry) ? entry.parentId : null });
    const first = firstVersionOf(id);
    if (first !== null) this.#versions.set(first, [...(this.#versions.get(first) ?? []), id]);
    if (entry.type !== "message" || entry.message.role !== "assistant" || !imported) return;
    const answer = firstVersionOf(id.replace(/\.spent$/, "")) ?? id;
    const { usage, cost } = this.#spent.get(answer) ?? { usage: NO_USAGE, cost: 0 };
    const { message } = entry;
    this.#spent.set(answer, { usage: addUsage(usage, message.usage), cost: addCost(cost, message.cost) });
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
    this.#fileLeafId = this.#leafId;
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
    for (let tries = 1; ; tries++) {
      const head = this.#head as SessionHead;
      // Whoever goes on here has moved the leaf; then the file's moves are not followed.
      const followed = head.leafId === this.#leafId;
      const plan = this.#plan(drafts, followed);
      const entries = followed ? plan.entries : plan.entries.filter(({ type }) => type !== "leaf");
      try {
        if (entries.length > 0 && this.#target.dryRun !== true) {
          const written = await this.#write(entries, head.version);
          // All of it was there, as someone else has added the same and perhaps more: that is learned before going on.
          if (written.version !== head.version + entries.length && tries < TRIES_MAX && (await this.#find())) continue;
          this.#head = written;
        }
      } catch (error) {
        if (!isRace(error) || tries === TRIES_MAX) throw error;
        // Someone else has added to the session: what they said may be what is to be added here.
        if (await this.#find()) {
          if (this.#head?.version === head.version) throw error;
          continue;
        }
        this.outcome = "deleted";
        return;
      }
      this.added += entries.length;
      if (this.outcome === "same" && entries.length > 0) this.outcome = "grown";
      for (const entry of entries) this.#follow(entry);
      this.#fileLeafId = plan.fileLeafId;
      return;
    }
  }

  async #write(drafts: readonly ForeignDraft[], expectedVersion: number): Promise<SessionHead> {
    const stamped = drafts.map((draft) => ({ inherited: true as const, ...draft }));
    const { variablesBytesMax } = this.#target.limits ?? {};
    const guard = variablesBytesMax === undefined ? {} : { guard: { variablesBytesMax } };
    const options = { verbatim: true, expectedVersion, ...guard };
    return (await this.#target.store.append(this.sessionId, stamped, options)).head;
  }

  /** What must be added so that the session says what the drafts say, and where the file stands after them. */
  #plan(drafts: readonly ForeignDraft[], followed: boolean): AppendPlan {
    const plan = new AppendPlan(this.#leafId, this.#fileLeafId);
    for (const draft of drafts) {
      this.#changed.delete(draft.id);
      const moved = this.#moved(draft);
      const { type, id } = moved;
      if (type === "leaf") plan.move(moved, this.#known.has(id));
      else {
        const known = this.#known.size === 0 ? undefined : this.#known.get(id);
        if (known === undefined) plan.add(moved);
        else this.#takeKnown(moved, known, plan);
      }
    }
    if (!followed || this.#own) plan.superseded.length = 0;
    return plan.end();
  }

  /** Passes over an entry that is there already, or adds a new version of it. */
  #takeKnown(moved: ForeignDraft, known: KnownEntry, plan: AppendPlan): void {
    const { id, parentId } = moved;
    const print = fingerprint(moved);
    const hangs = !isNode(moved) || known.parentId === parentId;
    if (hangs && known.print === print && !this.#hidden.has(id)) {
      plan.pass(moved, id);
      return;
    }
    const version = this.#versionOf(id, [print, isNode(moved) ? parentId : null]);
    this.#changed.set(id, version);
    if (this.#known.has(version)) {
      plan.pass(moved, version);
      return;
    }
    const versions = [id, ...(this.#versions.get(id) ?? [])];
    const beyond = isAnswer(moved)
      ? spendingBeyond(moved, this.#spent.get(id), versions.at(-1) as string, version)
      : null;
    if (beyond !== null) plan.beside(beyond);
    plan.add({ ...(isAnswer(moved) ? withSpentBeside(moved) : moved), id: version });
    // What hangs on an old version goes with it.
    for (const old of isNode(moved) ? versions : []) {
      const parent = this.#known.get(old)?.parentId ?? null;
      if (!this.#hidden.has(old) && (parent === null || !plan.isSuperseded(parent))) plan.superseded.push(old);
      plan.supersede(old);
    }
  }

  /** The id of the version of an entry that says this: one that is there and not hidden, or a new one. */
  #versionOf(id: string, said: readonly (string | null)[]): string {
    for (let number = 0; ; number++) {
      const version = `${id}${VERSION_MARK}${digest([...said, number]).slice(0, VERSION_DIGITS)}`;
      if (!this.#hidden.has(version)) return version;
    }
  }

  /** A draft whose parent or target may have changed. */
  #moved(draft: ForeignDraft): ForeignDraft {
    if (this.#changed.size === 0) return draft;
    const moved: Record<string, unknown> = { ...draft };
    for (const field of ["parentId", "targetId", "firstKeptEntryId", "fromId"]) {
      const id = moved[field];
      if (typeof id === "string") moved[field] = this.#changed.get(id) ?? id;
    }
    return moved as unknown as ForeignDraft;
  }

  /** Moves the leaf as the store does. */
  #follow(entry: Entry | ForeignDraft): void {
    if (entry.type === "leaf") this.#leafId = entry.targetId;
    else if (isNode(entry) && entry.parentId === this.#leafId) this.#leafId = entry.id;
  }
}

/** The entries of one append, each with the moves of the leaf that it needs. */
class AppendPlan {
  readonly entries: ForeignDraft[] = [];
  /** Old versions to prune. */
  readonly superseded: string[] = [];
  readonly #superseded = new Set<string>();
  #leafId: string | null;
  /** Where the file stands. */
  fileLeafId: string | null;

  constructor(leafId: string | null, fileLeafId: string | null) {
    this.#leafId = leafId;
    this.fileLeafId = fileLeafId;
  }

  supersede(id: string): void {
    this.#superseded.add(id);
  }

  isSuperseded(id: string): boolean {
    return this.#superseded.has(id);
  }

  /** The file goes elsewhere; a move that is `known` was made before. */
  move(draft: Extract<ForeignDraft, { type: "leaf" }>, known: boolean): void {
    this.fileLeafId = draft.targetId;
    if (known || draft.targetId === this.#leafId) return;
    this.entries.push(draft);
    this.#leafId = draft.targetId;
  }

  /** The file says what an entry says that is there. */
  pass(draft: ForeignDraft, id: string): void {
    if (isNode(draft)) this.fileLeafId = id;
  }

  add(draft: ForeignDraft): void {
    if (isNode(draft)) {
      this.#leafTo(draft.parentId, `${draft.id}.leaf`, draft.timestamp);
      this.#leafId = draft.id;
      this.fileLeafId = draft.id;
    }
    this.entries.push(draft);
  }

  /** Adds a node that the file does not stand on. */
  beside(draft: ForeignDraft): void {
    if (draft.parentId === this.#leafId) this.#leafId = draft.id;
    this.entries.push(draft);
  }

  end(): this {
    const last = this.entries.at(-1);
    if (last === undefined) return this;
    this.#leafTo(this.fileLeafId, `end.${digest([last.id, this.fileLeafId]).slice(0, 24)}`, last.timestamp);
    for (const targetId of this.superseded)
      this.entries.push({
        ...{ type: "prune", targetId, id: `${targetId}.prune` },
        ...{ parentId: this.#leafId, timestamp: last.timestamp },
      });
    return this;
  }

  #leafTo(targetId: string | null, id: string, timestamp: string): void {
    if (targetId === this.#leafId) return;
    this.entries.push({ type: "leaf", targetId, id, timestamp, parentId: this.#leafId });
    this.#leafId = targetId;
  }
}

/** Whether someone else was faster: with other entries, or with an earlier version of one of these. */
function isRace(error: unknown): boolean {
  return error instanceof SessionConflictError || (error instanceof SessionError && error.code === "ENTRY_EXISTS");
}

function createLimits({ limits }: ImportTarget): Pick<CreateOptions, "maxOpenPerUser" | "variablesBytesMax"> {
  if (limits === undefined) return {};
  const { entriesMax: _entriesMax, ...others } = limits;
  return others;
}

function fingerprint(entry: Entry | ForeignDraft): string {
  return digest(canonicalJson(bodyOf(entry)));
}

type AnswerDraft = Extract<ForeignDraft, { type: "message" }> & { readonly message: AssistantMessage };

function isAnswer(draft: ForeignDraft): draft is AnswerDraft {
  return draft.type === "message" && draft.message.role === "assistant";
}

/**
 * What an answer spent beyond what its earlier versions say, as an answer without words beside it; null for nothing. It is
 * not said by the new version, as what an answer says it spent is taken for the size of its context.
 */
function spendingBeyond(
  { message, timestamp }: AnswerDraft,
  spent: Spent | undefined,
  parentId: string,
  version: string,
): AnswerDraft | null {
  const { provider, model } = message;
  const usage = usageBeyond(message.usage, spent?.usage);
  const cost = Math.max(0, (message.cost ?? 0) - (spent?.cost ?? 0));
  if (usage === undefined && cost === 0) return null;
  const said: AssistantMessage = {
    ...{ role: "assistant", content: null },
    ...(provider === undefined ? {} : { provider }),
    ...(model === undefined ? {} : { model }),
    ...(usage === undefined ? {} : { usage }),
    ...(cost === 0 ? {} : { cost }),
  };
  return { type: "message", id: `${version}.spent`, parentId, timestamp, message: said };
}
