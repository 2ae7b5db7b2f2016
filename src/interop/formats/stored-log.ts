import { bodyOf, type Entry, isNode } from "../../session/log/entry.ts";
import { SessionConflictError, SessionError } from "../../session/errors.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { createHeader, type Lineage, type SessionHeader } from "../../session/log/header.ts";
import { isCwd } from "../../session/id.ts";
import type { CreateOptions, SessionStore } from "../../session/store.ts";
import { canonicalAttachments } from "../../stores/blobs/attachments.ts";
import { canonicalJson } from "../../stores/doctor/log-digest.ts";
import type { AssistantMessage } from "../../session/message.ts";
import { addCost, addUsage, NO_USAGE, type Usage } from "../../session/usage.ts";
import { firstVersionOf, VERSION_DIGITS, VERSION_MARK, moveUsageAside } from "./entry-version.ts";
import type { ForeignDraft, ForeignHeader, FormatName } from "./foreign-format.ts";
import { digest, foreignSessionId } from "./foreign-id.ts";
import type { ForeignLog } from "./foreign-log.ts";
import { noteFor } from "./foreign-note.ts";
import { subtractUsage } from "./subtract-usage.ts";

/** The store and the user that sessions are imported into. */
export interface ImportTarget {
  readonly store: SessionStore;
  /** The owner of the imported sessions; null for none. */
  readonly userId: string | null;
  /** Whether their usage counts in sums (default true). */
  readonly counts?: boolean;
  /** Reports what an import would do, and stores nothing. */
  readonly dryRun?: boolean;
  /** Limits for an import over HTTP. */
  readonly limits?: Pick<CreateOptions, "maxOpenPerUser" | "variablesBytesMax"> & { readonly entriesMax: number };
}

/** How many entries were read from a file so far, in all of its sessions. */
export interface EntryCount {
  entries: number;
}

/** How often an append is tried if other writers conflict with it. */
const TRIES_MAX = 20;

/** An entry that is stored already. */
interface KnownEntry {
  readonly print: string;
  /** The parent of a node; null for a fact. */
  readonly parentId: string | null;
}

/** The usage and cost counted for an answer, over all of its versions. */
interface Spent {
  readonly usage: Usage;
  readonly cost: number;
}

/**
 * Writes one foreign session into a store, as far as it has been read.
 *
 * - The first entries create the session; the header's `inherited` counts them. Each later entry is marked `inherited` itself.
 * - Entries that are stored already are skipped: an import is idempotent.
 * - An entry that has changed, such as an answer that was read before it was complete, is added again below the same parent,
 *   with all of its descendants. The old version is pruned, unless the session was continued here. Usage counts once.
 * - The leaf follows the file only while the session was not continued here.
 */
export class StoredLog {
  readonly sessionId: string;
  /** How many entries this import has added. */
  added = 0;
  /** `new`: created; `grown`: entries were added; `same`: nothing to add; `deleted`: deleted here before, and not restored. */
  outcome: "new" | "grown" | "same" | "deleted" = "same";
  readonly #target: ImportTarget;
  readonly #format: FormatName;
  readonly #log: ForeignLog;
  #head: SessionHead | null = null;
  /** The stored entries that this import has not added, by id. */
  readonly #known = new Map<string, KnownEntry>();
  /** The later versions found in the store, by the id of the first version. */
  readonly #versions = new Map<string, string[]>();
  readonly #spent = new Map<string, Spent>();
  /** Entries of pruned branches. */
  readonly #hidden = new Set<string>();
  /** Whether the session was continued here: a node or a move of the leaf that no import added. */
  #continuedHere = false;
  /** From the id of a changed entry to the id of its new version. */
  readonly #changed = new Map<string, string>();
  readonly #counted: EntryCount;
  /** The leaf as imports have set it. */
  #leafId: string | null = null;
  /** The leaf of the file, as an id of an entry here. */
  #fileLeafId: string | null = null;

  constructor(target: ImportTarget, format: FormatName, log: ForeignLog, counted: EntryCount = { entries: 0 }) {
    this.#counted = counted;
    this.#target = target;
    this.#format = format;
    this.#log = log;
    this.sessionId = foreignSessionId(target.userId, format, log.header.foreignId);
  }

  /** Stores the entries that were read since the last call. */
  async store(): Promise<void> {
    if (this.outcome === "deleted") return;
    const drafts = this.#log.take();
    this.#checkCount(drafts.length);
    if (this.#head === null && !(await this.#find())) await this.#create(drafts);
    else if (drafts.length > 0) await this.#append(drafts);
  }

  /** Removes the session if this import created it and nobody has written to it since. */
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
        `The file has more than ${entriesMax} entries, the most that one import accepts.`,
      );
  }

  /** Whether the session exists. Reads and indexes the entries that were added since the last call. */
  async #find(): Promise<boolean> {
    const { store } = this.#target;
    const after = (this.#head?.version ?? 0) - 1;
    this.#head = await store.head(this.sessionId);
    if (this.#head === null) return false;
    const { version, header } = this.#head;
    const imported = header.inherited?.entries ?? 0;
    for await (const entry of store.read(this.sessionId, { after, before: version }))
      this.#index(entry, entry.inherited === true || entry.seq < imported);
    // Parents precede children in the map, so one pass hides all descendants.
    for (const [id, { parentId }] of this.#hidden.size === 0 ? [] : this.#known)
      if (parentId !== null && this.#hidden.has(parentId)) this.#hidden.add(id);
    return true;
  }

  #index(entry: Entry, imported: boolean): void {
    const { id } = entry;
    if (entry.type === "prune") this.#hidden.add(entry.targetId);
    if (entry.type === "leaf" || isNode(entry)) {
      if (imported) this.#follow(entry);
      else this.#continuedHere = true;
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
      // Either it was deleted here and can be undeleted, or another import has just created it.
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

  /** The lineage. Parent ids are derived for the same user, so a file cannot name another user's session. */
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
      // If the session was continued here, its leaf differs, and moves of the file's leaf are not applied.
      const followed = head.leafId === this.#leafId;
      const plan = this.#plan(drafts, followed);
      const entries = followed ? plan.entries : plan.entries.filter(({ type }) => type !== "leaf");
      try {
        if (entries.length > 0 && this.#target.dryRun !== true) {
          const written = await this.#write(entries, head.version);
          // Another import added the same entries, and perhaps more: read them before continuing.
          if (written.version !== head.version + entries.length && tries < TRIES_MAX && (await this.#find())) continue;
          this.#head = written;
        }
      } catch (error) {
        if (!isRace(error) || tries === TRIES_MAX) throw error;
        // Another writer has added to the session, perhaps the same entries: read them and plan again.
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

  /** Plans the entries that must be added for the drafts, and the leaf of the file after them. */
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
        else this.#planKnown(moved, known, plan);
      }
    }
    if (!followed || this.#continuedHere) plan.superseded.length = 0;
    return plan.end();
  }

  /** Skips an entry that is stored unchanged, or plans a new version of it. */
  #planKnown(moved: ForeignDraft, known: KnownEntry, plan: AppendPlan): void {
    const { id, parentId } = moved;
    const print = fingerprint(moved);
    const hangs = !isNode(moved) || known.parentId === parentId;
    if (hangs && known.print === print && !this.#hidden.has(id)) {
      plan.skip(moved, id);
      return;
    }
    const version = this.#versionOf(id, [print, isNode(moved) ? parentId : null]);
    this.#changed.set(id, version);
    if (this.#known.has(version)) {
      plan.skip(moved, version);
      return;
    }
    const versions = [id, ...(this.#versions.get(id) ?? [])];
    const beyond = isAnswer(moved)
      ? spendingBeyond(moved, this.#spent.get(id), versions.at(-1) as string, version)
      : null;
    if (beyond !== null) plan.addOffLeaf(beyond);
    plan.add({ ...(isAnswer(moved) ? moveUsageAside(moved) : moved), id: version });
    // Descendants of an old version are pruned with it: prune only the topmost one.
    for (const old of isNode(moved) ? versions : []) {
      const parent = this.#known.get(old)?.parentId ?? null;
      if (!this.#hidden.has(old) && (parent === null || !plan.isSuperseded(parent))) plan.superseded.push(old);
      plan.supersede(old);
    }
  }

  /** The id of the version with this content: derived from it, and counted up past hidden versions. */
  #versionOf(id: string, said: readonly (string | null)[]): string {
    for (let number = 0; ; number++) {
      const version = `${id}${VERSION_MARK}${digest([...said, number]).slice(0, VERSION_DIGITS)}`;
      if (!this.#hidden.has(version)) return version;
    }
  }

  /** The draft with references to changed entries replaced by their new versions. */
  #moved(draft: ForeignDraft): ForeignDraft {
    if (this.#changed.size === 0) return draft;
    const moved: Record<string, unknown> = { ...draft };
    for (const field of ["parentId", "targetId", "firstKeptEntryId", "fromId"]) {
      const id = moved[field];
      if (typeof id === "string") moved[field] = this.#changed.get(id) ?? id;
    }
    return moved as unknown as ForeignDraft;
  }

  /** Updates `#leafId` for an entry, by the same rules as the store. */
  #follow(entry: Entry | ForeignDraft): void {
    if (entry.type === "leaf") this.#leafId = entry.targetId;
    else if (isNode(entry) && entry.parentId === this.#leafId) this.#leafId = entry.id;
  }
}

/** The entries of one append, with the `leaf` facts that they need. */
class AppendPlan {
  readonly entries: ForeignDraft[] = [];
  /** Old versions to prune. */
  readonly superseded: string[] = [];
  readonly #superseded = new Set<string>();
  #leafId: string | null;
  /** The leaf of the file. */
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

  /** Applies a move of the file's leaf; a `known` move is stored already. */
  move(draft: Extract<ForeignDraft, { type: "leaf" }>, known: boolean): void {
    this.fileLeafId = draft.targetId;
    if (known || draft.targetId === this.#leafId) return;
    this.entries.push(draft);
    this.#leafId = draft.targetId;
  }

  /** Skips a draft that is stored already under `id`. */
  skip(draft: ForeignDraft, id: string): void {
    if (isNode(draft)) this.fileLeafId = id;
  }

  add(draft: ForeignDraft): void {
    if (isNode(draft)) {
      this.#moveLeaf(draft.parentId, `${draft.id}.leaf`, draft.timestamp);
      this.#leafId = draft.id;
      this.fileLeafId = draft.id;
    }
    this.entries.push(draft);
  }

  /** Adds a node without moving the file's leaf to it. */
  addOffLeaf(draft: ForeignDraft): void {
    if (draft.parentId === this.#leafId) this.#leafId = draft.id;
    this.entries.push(draft);
  }

  end(): this {
    const last = this.entries.at(-1);
    if (last === undefined) return this;
    this.#moveLeaf(this.fileLeafId, `end.${digest([last.id, this.fileLeafId]).slice(0, 24)}`, last.timestamp);
    for (const targetId of this.superseded)
      this.entries.push({
        ...{ type: "prune", targetId, id: `${targetId}.prune` },
        ...{ parentId: this.#leafId, timestamp: last.timestamp },
      });
    return this;
  }

  #moveLeaf(targetId: string | null, id: string, timestamp: string): void {
    if (targetId === this.#leafId) return;
    this.entries.push({ type: "leaf", targetId, id, timestamp, parentId: this.#leafId });
    this.#leafId = targetId;
  }
}

/** Whether the append lost against another writer, who added other entries or another version of one of these. */
function isRace(error: unknown): boolean {
  return error instanceof SessionConflictError || (error instanceof SessionError && error.code === "ENTRY_EXISTS");
}

function createLimits({ limits }: ImportTarget): Pick<CreateOptions, "maxOpenPerUser" | "variablesBytesMax"> {
  if (limits === undefined) return {};
  const { entriesMax: _entriesMax, ...others } = limits;
  return others;
}

function fingerprint(entry: Entry | ForeignDraft): string {
  return digest(canonicalJson(canonicalAttachments(bodyOf(entry))));
}

type AnswerDraft = Extract<ForeignDraft, { type: "message" }> & { readonly message: AssistantMessage };

function isAnswer(draft: ForeignDraft): draft is AnswerDraft {
  return draft.type === "message" && draft.message.role === "assistant";
}

/**
 * An answer without content that records usage and cost beyond those of the earlier versions; null if there are none. The new
 * version itself does not record them, because the usage of an answer is read as the size of its context.
 */
function spendingBeyond(
  { message, timestamp }: AnswerDraft,
  spent: Spent | undefined,
  parentId: string,
  version: string,
): AnswerDraft | null {
  const { provider, model } = message;
  const usage = subtractUsage(message.usage, spent?.usage);
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
