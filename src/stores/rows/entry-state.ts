import type { StoredEntry } from "../../session/log/append-plan.ts";
import type { SessionStatus } from "../../session/log/entry.ts";
import { inheritedCount, type PathSummary, type SessionHead } from "../../session/log/fold.ts";
import { type OpenRun, readOpenRuns } from "../../session/log/open-runs.ts";
import { type Settings, type SettingsChange, type SettingsNode, wholeSettings } from "../../session/log/settings.ts";
import { NO_USAGE, USAGE_FIELDS, type Usage } from "../../session/usage.ts";
import { freezeDeep } from "../../internal/freeze-deep.ts";

/**
 * What a row of the log says beside its entry, as JSON: the path that ends at it, if it is a node, and the head after
 * it. So the head at any position is read from that row and the few it points to, and an append rewrites nothing.
 *
 * What is at its default is left out. Large or rarely changing parts stand only in the row that changed them; the
 * others hold that row's `seq` instead.
 */
export interface EntryState {
  /** The head's `updatedAt`. */
  readonly at: string;
  /** The head's `modifiedAt`, where it is not `at`. */
  readonly modified?: string | undefined;
  readonly depth?: number | undefined;
  /** The path's turn count, where it is not the depth. */
  readonly turns?: number | undefined;
  readonly usage?: UsageState | undefined;
  readonly cost?: number | undefined;
  readonly compaction?: string | undefined;
  readonly model?: readonly [provider: string, modelId: string] | undefined;
  readonly thinking?: string | undefined;
  readonly settings?: number | SettingsState | Settings | undefined;
  /** Where the head's leaf is, unless it is this entry. */
  readonly leaf?: number | null | undefined;
  readonly facts?: number | FactsState | undefined;
  /** The head's message count, usage and cost, where they are not those of the leaf's path. */
  readonly messages?: number | undefined;
  readonly spent?: UsageState | undefined;
  readonly spentCost?: number | undefined;
  readonly closed?: true | undefined;
}

/** A `SettingsNode` at the row that holds it. Rows of the first schema hold all settings there. */
export interface SettingsState extends SettingsChange {
  readonly n: number;
  readonly before?: number;
}

/** The counters in the order of `USAGE_FIELDS`. */
type UsageState = readonly (number | null)[];

/** The part of a head that few entries change. */
export interface FactsState {
  readonly status?: SessionStatus | undefined;
  readonly reason?: string | undefined;
  readonly name?: string | undefined;
  readonly firstMessage?: string | undefined;
  readonly openRuns?: readonly (OpenRun | string)[] | undefined;
  readonly undone?: readonly string[] | undefined;
}

/** A head, and the rows that hold its parts. */
export interface HeadPlace {
  readonly head: SessionHead;
  readonly leafSeq: number | null;
  readonly factsSeq: number | null;
}

type MutableState = { -readonly [Field in keyof EntryState]: EntryState[Field] };

/** The state of a new entry, as JSON. `next` is the head after it, `before` the one before. */
export function encodeState(before: HeadPlace, { entry, path }: StoredEntry, next: HeadPlace): string {
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

/** Whether two heads have the part in common that few entries change. */
export function sameFacts(a: SessionHead, b: SessionHead): boolean {
  return (
    a.status === b.status &&
    a.statusReason === b.statusReason &&
    a.name === b.name &&
    a.firstMessage === b.firstMessage &&
    a.openRuns === b.openRuns &&
    a.undone === b.undone
  );
}

/** The path that ends at a node, with its settings, wherever they are; or null for a fact. */
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

/** Settings as the row holds them that they stand at. */
function settingsState({ count, change, before }: SettingsNode): SettingsState {
  return { n: count, ...(before === null ? {} : { before }), ...change };
}

/** The head after an entry, given the path to its leaf and the state of the row that holds its facts. */
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
    // Before the first message it is the creation, which for a fork is not that of the session the row belongs to.
    modifiedAt: messageCount === 0 ? header.createdAt : (state.modified ?? state.at),
    messageCount,
    firstMessage: facts.firstMessage ?? null,
    usage: state.spent === undefined ? path.usage : decodeUsage(state.spent),
    cost: state.spentCost ?? path.cost,
    // A row of the session that this one was forked from tells of runs in there.
    openRuns: freezeDeep(readOpenRuns((factsSeq < inheritedCount(header) ? undefined : facts.openRuns) ?? [])),
    undone: Object.freeze(facts.undone ?? []),
    closed: state.closed === true,
  });
}

/** Adds the fields that tell the path which ends at `seq`. */
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

/** The part of a head that few entries change. */
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

/** What a head sums up over all branches, where that is not what its path does. */
function addTotals(state: MutableState, { path, messageCount, usage, cost, closed }: SessionHead): void {
  if (messageCount !== path.turnCount) state.messages = messageCount;
  if (!sameUsage(usage, path.usage)) state.spent = usageState(usage);
  if (cost !== path.cost) state.spentCost = cost;
  if (closed) state.closed = true;
}

/** The settings that the row at a position itself holds, or null. Not frozen for a caller who uses them up. */
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

/** Whether two usages are equal in every counter. */
function sameUsage(a: Usage, b: Usage): boolean {
  if (a === b) return true;
  for (const field of USAGE_FIELDS) if (a[field] !== b[field]) return false;
  return true;
}
