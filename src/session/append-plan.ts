import { sameJson } from "../internal/json.ts";
import type { CheckedDraft } from "./draft.ts";
import { bodyOf, type Entry, type EntryBody, type EntryStamp, isNode, type SessionStatus } from "./entry.ts";
import {
  LeaseLostError,
  notANode,
  SessionCapacityError,
  SessionClosedError,
  SessionConflictError,
  SessionError,
  SessionExpiredError,
  SessionSuspendedError,
  show,
  UnknownEntryError,
} from "./errors.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, stepHead, stepPath } from "./fold.ts";
import type { AppendOptions, Guard } from "./store.ts";

/** How much the variables after each entry of one append may take together, and how many, where they are limited at all. */
const VARIABLES_BYTES_PER_APPEND = 32 * 1024 * 1024;
const VARIABLES_PER_APPEND = 50_000;

/** An entry as a store holds it: a node carries the summary of its path, a fact does not. */
export interface StoredEntry {
  readonly entry: Entry;
  readonly path: PathSummary | null;
}

/** What an append will do, decided before anything is written. */
export interface AppendPlan {
  /** The entry of each draft: a new one, or the one that an earlier try already stored. */
  readonly entries: readonly Entry[];
  /** What must be written, in this order. Empty for an exact retry. */
  readonly added: readonly StoredEntry[];
  readonly head: SessionHead;
}

/** What `planAppend` decides on. */
export interface AppendInput {
  readonly head: SessionHead;
  readonly drafts: readonly CheckedDraft[];
  readonly options: AppendOptions;
  /** The stored entries among `idsToFind`. */
  readonly found: ReadonlyMap<string, StoredEntry>;
  /** The token of the session's live lease, when a guard asks for one. */
  readonly leaseToken?: number | null;
  /** The store's clock. */
  readonly now: string;
}

/** The ids that a store must look up before it can plan an append; none for the common case of new entries at the leaf. */
export function idsToFind(
  head: SessionHead,
  drafts: readonly CheckedDraft[],
  options: AppendOptions,
): readonly string[] {
  const { onto } = options;
  if ((typeof onto !== "string" || onto === head.leafId) && drafts.every(namesNothing)) return NO_IDS;
  const ids = new Set<string>();
  if (typeof onto === "string") ids.add(onto);
  for (const { id, fresh, parentId, body } of drafts) {
    if (!fresh) ids.add(id);
    if (typeof parentId === "string" && isNode(body)) ids.add(parentId);
    const target = targetOf(body);
    if (target !== null) ids.add(target);
  }
  // The path of the leaf is in the head; only a fact that names the leaf needs the entry itself.
  if (head.leafId !== null && !drafts.some(({ id, body }) => id === head.leafId || targetOf(body) === head.leafId))
    ids.delete(head.leafId);
  return [...ids];
}

const NO_IDS: readonly string[] = [];

/** Whether a draft can only be new, and says nothing of other entries. */
function namesNothing({ fresh, parentId, body }: CheckedDraft): boolean {
  return fresh && typeof parentId !== "string" && targetOf(body) === null;
}

/**
 * Decides what an append writes. Pure: every store plans with this function, and then writes `added` and `head` together.
 *
 * @throws {SessionError} for a conflict, a guard that does not hold, an id with other content, or an unknown target.
 */
export function planAppend(input: AppendInput): AppendPlan {
  const { head, drafts, options } = input;
  // Drafts are nearly always new, and then none of them has an entry.
  const existing =
    input.found.size === 0 ? [] : drafts.map((draft) => existingEntry(head.header.id, draft, input.found));
  if (existing.length > 0 && existing.every((entry) => entry !== null))
    return { entries: existing as Entry[], added: [], head };
  checkGuard(input);
  if (options.expectedVersion !== undefined && options.expectedVersion !== head.version) {
    throw new SessionConflictError(head.header.id, options.expectedVersion, head.version);
  }
  const chain = new Chain(input);
  const entries = drafts.map((draft, index) => existing[index] ?? chain.add(draft));
  checkTurns(chain.head, head, options.guard);
  return { entries, added: chain.added, head: chain.head };
}

/** The error that a session's status is to someone who wants to write turns. */
export function statusError(sessionId: string, status: SessionStatus): SessionError {
  if (status === "suspended") return new SessionSuspendedError(sessionId);
  if (status === "expired") return new SessionExpiredError(sessionId);
  if (status === "closed") return new SessionClosedError(sessionId);
  return new SessionError("TRANSITION", `Session ${sessionId} is active.`);
}

/** Chains drafts on each other and folds each into the head. */
class Chain {
  readonly added: StoredEntry[] = [];
  head: SessionHead;
  readonly #input: AppendInput;
  readonly #sessionId: string;
  /** Those that were added; null while there is none, as often one is all. */
  #own: Map<string, StoredEntry> | null = null;
  #cursor: string | null;
  /** What the variables after each entry that changed them take together, and how many they are. */
  #variablesBytes = 0;
  #variables = 0;

  constructor(input: AppendInput) {
    this.#input = input;
    this.head = input.head;
    this.#sessionId = input.head.header.id;
    const { onto } = input.options;
    if (onto === undefined) this.#cursor = input.head.leafId;
    else {
      this.#pathOf(onto);
      this.#cursor = onto;
    }
  }

  add(draft: CheckedDraft): Entry {
    const own = this.#own?.get(draft.id);
    if (own !== undefined) return checkSame(this.#sessionId, draft, own.entry);
    const node = isNode(draft.body);
    const parentId = draft.parentId === undefined ? this.#cursor : draft.parentId;
    const entry = entryOf(draft.body, {
      id: draft.id,
      parentId,
      timestamp: draft.timestamp ?? this.#input.now,
      seq: this.head.version,
    });
    const path = node ? stepPath(this.#pathOf(parentId), entry) : null;
    if (path !== null && entry.type === "variables") this.#countVariables(path);
    this.#checkTarget(entry);
    const target = entry.type === "leaf" ? this.#pathOf(entry.targetId) : EMPTY_PATH;
    this.head = stepHead(this.head, entry, path ?? target, this.#input.now);
    if (node) this.#cursor = entry.id;
    else if (entry.type === "leaf") this.#cursor = entry.targetId;
    const stored = { entry, path };
    this.added.push(stored);
    this.#own ??= new Map();
    this.#own.set(entry.id, stored);
    return entry;
  }

  #countVariables(path: PathSummary): void {
    const most = this.#input.options.guard?.variablesBytesMax;
    if (most === undefined) return;
    this.#variablesBytes += checkVariablesBytes(path, most);
    this.#variables += Object.keys(path.settings.variables).length;
    // Every one of these entries has a copy of all variables, so that many small ones in a row would fill the memory.
    if (this.#variablesBytes > VARIABLES_BYTES_PER_APPEND)
      throw new SessionCapacityError("bytes of variables in one append", VARIABLES_BYTES_PER_APPEND);
    if (this.#variables > VARIABLES_PER_APPEND)
      throw new SessionCapacityError("variables copied in one append", VARIABLES_PER_APPEND);
  }

  #pathOf(id: string | null): PathSummary {
    if (id === null) return EMPTY_PATH;
    if (id === this.head.leafId) return this.head.path;
    // `idsToFind` leaves out the leaf that the append begins at, and a copied log may hang several nodes on it.
    if (id === this.#input.head.leafId) return this.#input.head.path;
    const path = this.#find(id).path;
    if (path === null) throw notANode(this.#sessionId, id);
    return path;
  }

  #checkTarget(entry: Entry): void {
    const target = targetOf(entry);
    if (target === null) return;
    const { entry: found } = this.#find(target);
    if (entry.type === "compaction_undone" && found.type !== "compaction") {
      throw new SessionError(
        "INVALID_ENTRY",
        `Entry ${show(target)} of session ${this.#sessionId} is not a compaction.`,
      );
    }
  }

  #find(id: string): StoredEntry {
    const stored = this.#own?.get(id) ?? this.#input.found.get(id);
    if (stored === undefined) throw new UnknownEntryError(this.#sessionId, id);
    return stored;
  }
}

/** Key by key, as spreading a frozen body takes many times longer, and every append does this. */
function entryOf(body: EntryBody, { id, parentId, timestamp, seq }: EntryStamp): Entry {
  const entry: Record<string, unknown> = { type: body.type, id, parentId, timestamp, seq };
  for (const key in body) if (key !== "type") entry[key] = body[key as keyof EntryBody];
  return Object.freeze(entry) as unknown as Entry;
}

function targetOf(body: { readonly type: string }): string | null {
  const entry = body as Entry;
  switch (entry.type) {
    case "leaf":
    case "label":
    case "prune":
    case "compaction_undone":
      return entry.targetId;
    default:
      return null;
  }
}

function existingEntry(sessionId: string, draft: CheckedDraft, found: ReadonlyMap<string, StoredEntry>): Entry | null {
  const stored = draft.fresh ? undefined : found.get(draft.id);
  return stored === undefined ? null : checkSame(sessionId, draft, stored.entry);
}

function checkSame(sessionId: string, draft: CheckedDraft, entry: Entry): Entry {
  if (sameJson(draft.body, bodyOf(entry))) return entry;
  throw new SessionError(
    "ENTRY_EXISTS",
    `Session ${sessionId} already has an entry ${show(draft.id)} with other content; use another id.`,
  );
}

function checkGuard({ head, options: { guard }, leaseToken }: AppendInput): void {
  if (guard === undefined) return;
  const allowed = guard.status === undefined ? null : [guard.status].flat();
  if (allowed !== null && !allowed.includes(head.status)) throw statusError(head.header.id, head.status);
  if (guard.leaseToken !== undefined && guard.leaseToken !== leaseToken)
    throw new LeaseLostError(head.header.id, guard.leaseToken);
}

function checkTurns(next: SessionHead, head: SessionHead, guard: Guard | undefined): void {
  if (guard?.maxTurns === undefined || next.messageCount === head.messageCount) return;
  if (next.path.turnCount > guard.maxTurns) throw new SessionCapacityError("turns in a session", guard.maxTurns);
}

/**
 * How many bytes the variables of a path take as JSON, with the prompt and the names of tools and skills that are set with
 * them. @throws {SessionCapacityError} when that are more than so many.
 */
export function checkVariablesBytes({ settings }: PathSummary, most: number): number {
  const bytes = new TextEncoder().encode(JSON.stringify(settings)).length;
  if (bytes > most) throw new SessionCapacityError("bytes of variables in a session", most);
  return bytes;
}
