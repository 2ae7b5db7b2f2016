import type { AddedEntry, AppendPlan, StoredEntry } from "../../session/log/append-plan.ts";
import { SessionError } from "../../session/errors.ts";
import type { SessionStatus } from "../../session/log/entry.ts";
import { inheritedCount, type PathSummary, type SessionHead } from "../../session/log/fold.ts";
import { type OpenRun, readOpenRuns } from "../../session/log/open-runs.ts";
import { type Settings, type SettingsChange, type SettingsNode, wholeSettings } from "../../session/log/settings.ts";
import { NO_USAGE, USAGE_FIELDS, type Usage } from "../../session/usage.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";
import type { StoredRow } from "./row-port.ts";

/**
 * The derived data in a row, as JSON: the summary of the path that ends at the entry, if it is a node, and the head after the entry. The
 * head at any position can therefore be read from one row and the few rows it refers to, and
 * an append never rewrites an earlier row.
 *
 * Fields with their default value are left out. Large or rarely changing parts are stored only in the row that changed
 * them; later rows hold that row's `seq` instead.
 */
export interface EntryState {
  /** The head's `updatedAt`. */
  readonly at: string;
  /** The head's `modifiedAt`, if it differs from `at`. */
  readonly modified?: string | undefined;
  readonly depth?: number | undefined;
  /** The path's turn count, if it differs from the depth. */
  readonly turns?: number | undefined;
  readonly usage?: UsageState | undefined;
  readonly cost?: number | undefined;
  readonly compaction?: string | undefined;
  readonly model?: readonly [provider: string, modelId: string] | undefined;
  readonly thinking?: string | undefined;
  readonly settings?: number | SettingsState | Settings | undefined;
  /** The `seq` of the head's leaf, if the leaf is not this entry. */
  readonly leaf?: number | null | undefined;
  readonly facts?: number | FactsState | undefined;
  /** The head's message count, if it differs from the turn count of the leaf's path. */
  readonly messages?: number | undefined;
  /** The head's usage, if it differs from the usage of the leaf's path. */
  readonly spent?: UsageState | undefined;
  /** The head's cost, if it differs from the cost of the leaf's path. */
  readonly spentCost?: number | undefined;
  readonly closed?: true | undefined;
}

/** A `SettingsNode` as its own row stores it. Rows of the first schema store all settings of the path instead. */
export interface SettingsState extends SettingsChange {
  readonly n: number;
  readonly before?: number;
}

/** Usage counters in the order of `USAGE_FIELDS`. */
type UsageState = readonly (number | null)[];

/** The part of a head that few entries change. */
interface FactsState {
  readonly status?: SessionStatus | undefined;
  readonly reason?: string | undefined;
  readonly name?: string | undefined;
  readonly firstMessage?: string | undefined;
  readonly openRuns?: readonly (OpenRun | string)[] | undefined;
  readonly undone?: readonly string[] | undefined;
}

/** A head, with the positions of the rows that store its leaf and its facts. */
export interface LocatedHead {
  readonly head: SessionHead;
  readonly leafSeq: number | null;
  readonly factsSeq: number | null;
}

/** The encoded rows of an `AppendPlan`, and the head after them. */
export interface EncodedPlan {
  readonly rows: readonly StoredRow[];
  readonly located: LocatedHead;
}

/** How many characters the states of a plan may have beyond its entries: a state can repeat names, reasons and models. */
const STATES_CHARACTERS_MAX: number = 64 * 1024 * 1024;

type FoundEntries = ReadonlyMap<string, StoredEntry>;

type MutableState = { -readonly [Field in keyof EntryState]: EntryState[Field] };

/**
 * Encodes a plan as rows. Each row stores the head after its entry, so the log can be forked at any position.
 *
 * @throws {SessionError} `TOO_LARGE` if the states would repeat large facts in too many rows.
 */
export function encodePlan(start: LocatedHead, plan: AppendPlan, found: FoundEntries): EncodedPlan {
  const { added } = plan;
  const own = added.length === 1 ? found : new Map(found);
  const rows: StoredRow[] = [];
  let located = start;
  let excess = 0;
  for (let index = 0; index < added.length; index++) {
    const stored = added[index] as AddedEntry;
    const { entry, head } = stored;
    const next: LocatedHead = {
      head,
      leafSeq: leafAfter(located, stored, own),
      factsSeq: sameFacts(located.head, head) ? located.factsSeq : entry.seq,
    };
    const state = encodeState(located, stored, next);
    const body = JSON.stringify(entry);
    excess += state.length - body.length;
    if (excess > STATES_CHARACTERS_MAX) throw statesTooLarge(plan);
    rows.push({ seq: entry.seq, id: entry.id, state, body });
    located = next;
    if (own !== found) (own as Map<string, StoredEntry>).set(entry.id, stored);
  }
  return { rows, located };
}

function statesTooLarge({ head, added }: AppendPlan): SessionError {
  return new SessionError(
    "TOO_LARGE",
    `The ${added.length} entries for session ${head.header.id} would each store a large name, reason or list of runs again; append them in smaller parts.`,
  );
}

function leafAfter(before: LocatedHead, { entry, head }: AddedEntry, found: FoundEntries): number | null {
  if (head.leafId === entry.id) return entry.seq;
  if (entry.type !== "leaf") return before.leafSeq;
  return entry.targetId === null ? null : (found.get(entry.targetId)?.entry.seq ?? before.leafSeq);
}

/** The state of a new entry, as JSON. `before` is the head before the entry, `next` the head after it. */
function encodeState(before: LocatedHead, { entry, path }: StoredEntry, next: LocatedHead): string {
  const { head, leafSeq, factsSeq } = next;
  const state: MutableState = { at: head.updatedAt };
  if (head.modifiedAt !== head.updatedAt) state.modified = head.modifiedAt;
  if (path !== null) addPath(state, path, entry.seq);
  if (leafSeq !== entry.seq) state.leaf = leafSeq;
  if (factsSeq !== before.factsSeq) state.facts = factsOf(head);
  else if (factsSeq !== null) state.facts = factsSeq;
  addTotals(state, head);
  return JSON.stringify(state);
}

/** Whether the fields of `FactsState` are the same in two heads. */
function sameFacts(a: SessionHead, b: SessionHead): boolean {
  return (
    a.status === b.status &&
    a.statusReason === b.statusReason &&
    a.name === b.name &&
    a.firstMessage === b.firstMessage &&
    a.openRuns === b.openRuns &&
    a.undone === b.undone
  );
}

/** The summary of the path that ends at a node, or null for a fact. `settings` are the path's, from whichever row holds them. */
export function decodePath(state: EntryState, settings: SettingsNode | null): PathSummary | null {
  if (state.depth === undefined) return null;
  return Object.freeze({
    depth: state.depth,
    turnCount: state.turns ?? state.depth,
    usage: decodeUsage(state.usage),
    cost: state.cost ?? 0,
    compactionId: state.compaction ?? null,
    model: state.model === undefined ? null : Object.freeze({ provider: state.model[0], modelId: state.model[1] }),
    thinkingLevel: state.thinking ?? "off",
    settings,
  });
}

/** A settings node as its own row stores it. */
function settingsState({ count, change, before }: SettingsNode): SettingsState {
  return { n: count, ...(before === null ? {} : { before }), ...change };
}

/** The head after an entry, given the path summary of its leaf and the facts from the row that stores them. */
export function decodeHead(
  version: number,
  state: EntryState,
  parts: { header: SessionHead["header"]; leafId: string | null; path: PathSummary; facts: EntryState["facts"] },
): SessionHead {
  const { header, leafId, path } = parts;
  const facts: FactsState = typeof parts.facts === "object" ? parts.facts : {};
  const factsSeq = typeof state.facts === "number" ? state.facts : version - 1;
  const messageCount = state.messages ?? path.turnCount;
  return Object.freeze({
    header,
    version,
    leafId,
    path,
    status: facts.status ?? "active",
    statusReason: facts.reason ?? null,
    name: facts.name ?? null,
    updatedAt: state.at,
    // A session without messages was last modified at its creation. An inherited row has the time of the source, so use the header.
    modifiedAt: messageCount === 0 ? header.createdAt : (state.modified ?? state.at),
    messageCount,
    firstMessage: facts.firstMessage ?? null,
    usage: state.spent === undefined ? path.usage : decodeUsage(state.spent),
    cost: state.spentCost ?? path.cost,
    // An inherited row lists the open runs of the session that this one was forked from; a fork does not inherit them.
    openRuns: freezeDeep(readOpenRuns((factsSeq < inheritedCount(header) ? undefined : facts.openRuns) ?? [])),
    undone: Object.freeze(facts.undone ?? []),
    closed: state.closed === true,
  });
}

/** Adds the summary of the path that ends at `seq`. */
function addPath(state: MutableState, path: PathSummary, seq: number): void {
  const { depth, turnCount, usage, cost, compactionId, model, thinkingLevel, settings } = path;
  state.depth = depth;
  if (turnCount !== depth) state.turns = turnCount;
  if (!sameUsage(usage, NO_USAGE)) state.usage = usageState(usage);
  if (cost !== 0) state.cost = cost;
  if (compactionId !== null) state.compaction = compactionId;
  if (model !== null) state.model = [model.provider, model.modelId];
  if (thinkingLevel !== "off") state.thinking = thinkingLevel;
  if (settings !== null) state.settings = settings.seq === seq ? settingsState(settings) : settings.seq;
}

/** The facts of a head, without defaults. */
function factsOf(head: SessionHead): FactsState {
  const { status, statusReason, name, firstMessage, openRuns, undone } = head;
  return {
    status: status === "active" ? undefined : status,
    reason: statusReason ?? undefined,
    name: name ?? undefined,
    firstMessage: firstMessage ?? undefined,
    openRuns: openRuns.length === 0 ? undefined : openRuns,
    undone: undone.length === 0 ? undefined : undone,
  };
}

/** Adds the totals over all branches that differ from those of the leaf's path. */
function addTotals(state: MutableState, { path, messageCount, usage, cost, closed }: SessionHead): void {
  if (messageCount !== path.turnCount) state.messages = messageCount;
  if (!sameUsage(usage, path.usage)) state.spent = usageState(usage);
  if (cost !== path.cost) state.spentCost = cost;
  if (closed) state.closed = true;
}

/** The settings node that the row at `seq` itself stores, or null. Pass `frozen: false` only to a caller that may modify it. */
export function ownSettings({ settings }: EntryState, seq: number, frozen = true): SettingsNode | null {
  if (typeof settings !== "object") return null;
  if (frozen) freezeDeep(settings);
  if (!("n" in settings)) return wholeSettings(settings as Settings, seq);
  const { n: count, before = null, ...change } = settings;
  return Object.freeze({ count, seq, change: Object.freeze(change), before });
}

function usageState(usage: Usage): UsageState {
  const counters = USAGE_FIELDS.map((field) => usage[field] ?? null);
  while (counters.length > 3 && counters.at(-1) === null) counters.pop();
  return counters;
}

function decodeUsage(counters: UsageState | undefined): Usage {
  if (counters === undefined) return NO_USAGE;
  const usage: Record<string, number> = {};
  for (const [index, counter] of counters.entries())
    if (counter !== null) usage[USAGE_FIELDS[index] as string] = counter;
  return Object.freeze(usage) as unknown as Usage;
}

function sameUsage(a: Usage, b: Usage): boolean {
  if (a === b) return true;
  for (const field of USAGE_FIELDS) if (a[field] !== b[field]) return false;
  return true;
}
