import { sameJson } from "../../internal/json.ts";
import { checkEdit } from "./context-edit.ts";
import { checkGuard, checkHolder, checkRequests, checkTurns } from "./append-guard.ts";
import type { CheckedDraft } from "./draft.ts";
import { bodyOf, type Entry, type EntryBody, isNode } from "./entry.ts";
import {
  notANode,
  SessionCapacityError,
  SessionConflictError,
  SessionError,
  show,
  UnknownEntryError,
} from "../errors.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead, stepHead, stepPath } from "./fold.ts";
import { OPEN_RUNS_MAX } from "../limits.ts";
import type { SettingsNode } from "./settings.ts";
import { SettingsMeter } from "./settings-meter.ts";
import type { AppendOptions } from "../store.ts";

/** An entry as a store keeps it: a node with the summary of its path, a fact without. */
export interface StoredEntry {
  readonly entry: Entry;
  readonly path: PathSummary | null;
}

/** An entry that an append adds, with the head after it. */
export interface AddedEntry extends StoredEntry {
  readonly head: SessionHead;
}

/** The plan of an append: all that it will write. */
export interface AppendPlan {
  /** The entry for each draft: a new one, or the one that an earlier attempt already stored. */
  readonly entries: readonly Entry[];
  /** The entries to write, in this order. Empty for an exact retry. */
  readonly added: readonly AddedEntry[];
  readonly head: SessionHead;
}

/** The parts of the log that a plan needs. */
export interface Wanted {
  /** Entries by id. */
  readonly ids: readonly string[];
  /** Settings, by the position of the node that holds them. */
  readonly settings: readonly number[];
}

/** The requested parts that exist; an entry that does not exist is left out. */
export interface Found {
  readonly entries: ReadonlyMap<string, StoredEntry>;
  readonly settings: ReadonlyMap<number, SettingsNode>;
}

/** The time (of `performance.now`) after which an append must not be planned any more, in its options. */
export const PLAN_BEFORE: unique symbol = Symbol("planBefore");

/** Options of an append with such a time. */
export interface PlanOptions extends AppendOptions {
  readonly [PLAN_BEFORE]?: number;
}

/** Thrown instead of a plan after that time, with nothing written. */
export class PlannedTooLate extends SessionError {
  constructor(sessionId: string) {
    super("STORE_FAILED", `An append to session ${sessionId} waited too long; append again.`);
  }
}

/** The input of a plan. */
export interface AppendInput {
  readonly head: SessionHead;
  readonly drafts: readonly CheckedDraft[];
  readonly options: AppendOptions;
  /** The token of the session's current lease, if a guard needs it. */
  readonly leaseToken?: number | null;
  /** The store's clock. */
  readonly now: string;
}

/** The lookup result of an empty log. */
export const NOTHING_FOUND: Found = Object.freeze({ entries: new Map(), settings: new Map() });

/** A plan, with the entries that were looked up for it. */
export interface PlannedAppend {
  readonly plan: AppendPlan;
  readonly found: ReadonlyMap<string, StoredEntry>;
}

/**
 * Decides what an append writes, or returns the parts of the log that it needs for that. The caller then looks these up
 * and calls again with everything known so far. Every store plans with this function, and then writes the plan's
 * `added` and `head` together. In the common case, new entries at the leaf, nothing needs to be looked up.
 *
 * @throws {SessionError} for a conflict, a guard that does not hold, an id with other content, or an unknown target.
 */
export function planAppend(input: AppendInput, known: KnownLog = NOTHING_KNOWN): PlannedAppend | Wanted {
  if (known === NOTHING_KNOWN) {
    const ids = idsToFind(input.head, input.drafts, input.options);
    if (ids.length > 0) return { ids, settings: [] };
  }
  try {
    return { plan: planWith(input, known), found: known.found.entries };
  } catch (missing) {
    if (missing instanceof MissingPart) return missing.wanted;
    throw missing;
  }
}

/** Plans the first entries of a session. */
export function planFirst(head: SessionHead, drafts: readonly CheckedDraft[], now: string): AppendPlan {
  return planWith({ head, drafts, options: { verbatim: true }, now }, EMPTY_LOG);
}

/** Plans an append to a log with synchronous lookups. */
export function planNow(input: AppendInput, look: (wanted: Wanted) => Found): PlannedAppend {
  let known = NOTHING_KNOWN;
  for (;;) {
    const planned = planAppend(input, known);
    if ("plan" in planned) return planned;
    known = known.with(planned, look(planned));
  }
}

/** Plans an append to a log with asynchronous lookups. */
export async function planLater(input: AppendInput, look: (wanted: Wanted) => Promise<Found>): Promise<PlannedAppend> {
  let known = NOTHING_KNOWN;
  for (;;) {
    const planned = planAppend(input, known);
    if ("plan" in planned) return planned;
    known = known.with(planned, await look(planned));
  }
}

/** The parts of the log that were looked up for a plan. */
export class KnownLog {
  readonly found: Found;
  /** The ids that were looked up; null if everything in the log is known. */
  readonly #asked: ReadonlySet<string> | null;

  constructor(found: Found, asked: ReadonlySet<string> | null) {
    this.found = found;
    this.#asked = asked;
  }

  /** Returns a copy that also has the results of a lookup. */
  with({ ids }: Wanted, { entries, settings }: Found): KnownLog {
    const found = {
      entries: new Map([...this.found.entries, ...entries]),
      settings: new Map([...this.found.settings, ...settings]),
    };
    return new KnownLog(found, this.#asked === null ? null : new Set([...this.#asked, ...ids]));
  }

  /**
   * Returns an entry, or undefined if the log has none with this id. @throws {MissingPart} if the id was not looked up
   * yet.
   */
  find(id: string): StoredEntry | undefined {
    const stored = this.found.entries.get(id);
    if (stored === undefined && this.#asked?.has(id) === false) throw new MissingPart({ ids: [id], settings: [] });
    return stored;
  }

  settingsAt(seq: number): SettingsNode {
    const node = this.found.settings.get(seq);
    if (node === undefined) throw new MissingPart({ ids: [], settings: [seq] });
    return node;
  }
}

/** Nothing was looked up yet. Every plan starts with this, and most need no more. */
export const NOTHING_KNOWN: KnownLog = new KnownLog(NOTHING_FOUND, new Set());

/** A log without entries is known completely. */
const EMPTY_LOG = new KnownLog(NOTHING_FOUND, null);

/** Thrown inside a plan that needs more of the log. Not an `Error`, because recording a stack trace is slow. */
class MissingPart {
  readonly wanted: Wanted;
  constructor(wanted: Wanted) {
    this.wanted = wanted;
  }
}

/** The ids that are certainly needed: drafts that may be stored already, and entries that they refer to. */
function idsToFind(head: SessionHead, drafts: readonly CheckedDraft[], options: AppendOptions): readonly string[] {
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
  // The head has the path of the leaf; only a fact that refers to the leaf needs the entry itself.
  if (head.leafId !== null && !drafts.some(({ id, body }) => id === head.leafId || targetOf(body) === head.leafId))
    ids.delete(head.leafId);
  return [...ids];
}

const NO_IDS: readonly string[] = [];

/** Whether a draft must be new and refers to no other entry. */
function namesNothing({ fresh, parentId, body }: CheckedDraft): boolean {
  return fresh && typeof parentId !== "string" && targetOf(body) === null;
}

function planWith(input: AppendInput, known: KnownLog): AppendPlan {
  const { head, drafts, options } = input;
  let existing: readonly (Entry | null)[] = [];
  // Drafts are nearly always new; then no entry was found for them.
  if (known.found.entries.size > 0) {
    existing = drafts.map((draft) => existingEntry(head.header.id, draft, known.found.entries));
    checkRequests(head, existing);
    if (existing.every((entry) => entry !== null)) return { entries: existing as Entry[], added: [], head };
  }
  const before = (options as PlanOptions)[PLAN_BEFORE];
  if (before !== undefined && performance.now() > before) throw new PlannedTooLate(head.header.id);
  checkGuard(input);
  checkHolder(input, existing);
  if (options.expectedVersion !== undefined && options.expectedVersion !== head.version) {
    throw new SessionConflictError(head.header.id, options.expectedVersion, head.version);
  }
  const chain = new Chain(input, known);
  const entries = drafts.map((draft, index) => existing[index] ?? chain.add(draft));
  checkTurns(chain.head, input);
  return { entries, added: chain.added, head: chain.head };
}

/** Links each draft to the one before it and folds each into the head. */
class Chain {
  readonly added: AddedEntry[] = [];
  head: SessionHead;
  readonly #input: AppendInput;
  readonly #known: KnownLog;
  readonly #sessionId: string;
  /** The added entries; null if there is only one. */
  readonly #own: Map<string, StoredEntry> | null;
  #cursor: string | null;
  /** Null if settings may have any size. */
  readonly #meter: SettingsMeter | null;

  constructor(input: AppendInput, known: KnownLog) {
    this.#input = input;
    this.#known = known;
    this.head = input.head;
    this.#sessionId = input.head.header.id;
    this.#own = input.drafts.length === 1 ? null : new Map();
    const { onto, below, guard } = input.options;
    const bytesMax = guard?.variablesBytesMax;
    this.#meter = bytesMax === undefined ? null : new SettingsMeter(bytesMax, (last) => this.#chainOf(last));
    if (below !== undefined) this.#cursor = this.#isOnLeafsPath(below) ? input.head.leafId : below;
    else if (onto === undefined) this.#cursor = input.head.leafId;
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
    const entry = entryOf(draft, parentId, draft.timestamp ?? this.#input.now, this.head.version);
    const parent = node ? this.#pathOf(parentId) : EMPTY_PATH;
    const path = node ? stepPath(parent, entry, this.head.header, this.#settingsAt) : null;
    if (path !== null && entry.type === "variables")
      this.#meter?.check(parent.settings, entry, path.settings as SettingsNode);
    this.#checkTarget(entry);
    this.#checkOpenRuns(entry);
    const target = entry.type === "leaf" ? this.#pathOf(entry.targetId) : EMPTY_PATH;
    this.head = stepHead(this.head, entry, path ?? target, this.#input.now);
    if (node) this.#cursor = entry.id;
    else if (entry.type === "leaf") this.#cursor = entry.targetId;
    const stored = { entry, path, head: this.head };
    this.added.push(stored);
    this.#own?.set(entry.id, stored);
    return entry;
  }

  #pathOf(id: string | null): PathSummary {
    if (id === null) return EMPTY_PATH;
    if (id === this.head.leafId) return this.head.path;
    // In a copied log, several nodes may be children of the leaf at which the append starts.
    if (id === this.#input.head.leafId) return this.#input.head.path;
    const path = this.#find(id).path;
    if (path === null) throw notANode(this.#sessionId, id);
    return path;
  }

  /**
   * Whether an entry is on the path to the leaf. Reads only entries that came after it, because a parent always
   * precedes its children.
   */
  #isOnLeafsPath(entryId: string | null): boolean {
    const { leafId } = this.#input.head;
    if (entryId === null || entryId === leafId) return true;
    this.#pathOf(entryId);
    const { seq } = this.#find(entryId).entry;
    for (let at = leafId; at !== null; ) {
      if (at === entryId) return true;
      const { entry } = this.#find(at);
      if (entry.seq <= seq) return false;
      at = entry.parentId;
    }
    return false;
  }

  #chainOf(last: SettingsNode): readonly SettingsNode[] {
    const nodes = [last];
    for (let node = last; node.before !== null; nodes.push(node)) node = this.#settingsAt(node.before);
    return nodes;
  }

  readonly #settingsAt = (seq: number): SettingsNode => {
    const own = this.added[seq - this.#input.head.version]?.path?.settings;
    return own ?? this.#known.settingsAt(seq);
  };

  #checkTarget(entry: Entry): void {
    const target = targetOf(entry);
    // A copied path may lack the target of an edit that has no effect on it.
    if (target === null || (entry.type === "context_edit" && this.#input.options.verbatim === true)) return;
    const { entry: found } = this.#find(target);
    if (entry.type === "compaction_undone" && found.type !== "compaction" && found.type !== "erased") {
      throw new SessionError(
        "INVALID_ENTRY",
        `Entry ${show(target)} of session ${this.#sessionId} is not a compaction.`,
      );
    }
    if (entry.type === "context_edit") checkEdit(this.#sessionId, entry, found);
  }

  /** The limit does not apply to a copied log. */
  #checkOpenRuns(entry: Entry): void {
    const opens = entry.type === "run_request" || (entry.type === "run" && entry.phase === "started");
    if (!opens || this.#input.options.verbatim === true) return;
    const { openRuns } = this.head;
    if (openRuns.length >= OPEN_RUNS_MAX && !openRuns.some(({ runId }) => runId === entry.runId))
      throw new SessionCapacityError("open runs in a session", OPEN_RUNS_MAX);
  }

  #find(id: string): StoredEntry {
    const stored = this.#own?.get(id) ?? this.#known.find(id);
    if (stored === undefined) throw new UnknownEntryError(this.#sessionId, id);
    return stored;
  }
}

/** Copied key by key: spreading a frozen object is many times slower, and every append does this. */
function entryOf(draft: CheckedDraft, parentId: string | null, timestamp: string, seq: number): Entry {
  const { id, by, run, inherited, body } = draft;
  const entry: Record<string, unknown> = { type: body.type, id, parentId, timestamp, seq };
  if (by !== undefined) entry.by = by;
  if (run !== undefined) entry.run = run;
  if (inherited !== undefined) entry.inherited = inherited;
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
    case "approval":
      return entry.question ?? null;
    case "context_edit":
      return entry.targetId ?? entry.undo ?? null;
    default:
      return null;
  }
}

function existingEntry(sessionId: string, draft: CheckedDraft, found: ReadonlyMap<string, StoredEntry>): Entry | null {
  const stored = draft.fresh ? undefined : found.get(draft.id);
  return stored === undefined ? null : checkSame(sessionId, draft, stored.entry);
}

function checkSame(sessionId: string, draft: CheckedDraft, entry: Entry): Entry {
  if (sameJson(draft.body, bodyOf(entry)) || draft.isSame?.(bodyOf(entry)) === true) return entry;
  throw new SessionError(
    "ENTRY_EXISTS",
    `Session ${sessionId} already has an entry ${show(draft.id)} with other content; use another id.`,
  );
}
