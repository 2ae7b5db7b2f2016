import { type JsonObject, type JsonValue, sameJson } from "../../internal/json.ts";
import type { Entry, EntryDraft } from "../../session/log/entry.ts";
import type { SessionStore, AppendOptions } from "../../session/store.ts";
import type { MergeConflict, SkippedTurn } from "./merge-strategy.ts";
import { type Candidate, isThere } from "./take-over.ts";
import {
  type AppendPlan,
  type Found,
  planLater,
  type StoredEntry,
  type Wanted,
} from "../../session/log/append-plan.ts";
import { checkDrafts } from "../../session/log/draft.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { isReservedId } from "../../session/log/open-runs.ts";
import { readSettings, type Settings, type SettingsNode } from "../../session/log/settings.ts";

/** The entries that a merge appends, and those that it skips. */
export interface MergePlan {
  readonly drafts: readonly (EntryDraft & { readonly id: string })[];
  readonly skipped: readonly SkippedTurn[];
}

/** Leaves out the entries that the parent already has, and edits of entries that are not merged. */
export async function planMerge(
  store: SessionStore,
  parentId: string,
  candidates: readonly Candidate[],
): Promise<MergePlan> {
  const drafts = new Map<string, Candidate["draft"]>();
  const skipped: SkippedTurn[] = [];
  // The ids in the parent of what is merged, now or before, by the ids in the branch.
  const ids = new Map<string, string>();
  for (const given of candidates) {
    const candidate = withTarget(given, ids);
    if (candidate === null) continue;
    const { draft } = candidate;
    const { id, isPresent } = await idInParent(store, parentId, candidate);
    ids.set(draft.id, id);
    if (!isPresent) drafts.set(id, { ...draft, id });
    else if (draft.type === "message" || draft.type === "branch_summary") {
      skipped.push({ turnId: draft.id, reason: "present" });
    }
  }
  return { drafts: [...drafts.values()], skipped };
}

/** A candidate that names its target by the id in the parent; null for an edit of what is not merged. */
function withTarget(candidate: Candidate, ids: ReadonlyMap<string, string>): Candidate | null {
  const { draft } = candidate;
  if (draft.type !== "context_edit") return candidate;
  const target = ids.get(draft.targetId ?? draft.undo ?? "");
  if (target === undefined) return null;
  return { ...candidate, draft: { ...draft, ...(draft.undo === undefined ? { targetId: target } : { undo: target }) } };
}

/** The id for a candidate in the parent; null if the parent already has it. */
export async function freeId(store: SessionStore, parentId: string, candidate: Candidate): Promise<string | null> {
  const { id, isPresent } = await idInParent(store, parentId, candidate);
  return isPresent ? null : id;
}

/** The id that a candidate has, or gets, in the parent. */
async function idInParent(
  store: SessionStore,
  parentId: string,
  candidate: Candidate,
): Promise<{ readonly id: string; readonly isPresent: boolean }> {
  const { id } = candidate.draft;
  const entry = await store.getEntry(parentId, id);
  // The id of a run's input is reserved for that run: in the parent, the entry is not the input of a run, so it gets another id.
  if (entry === null && !isReservedId(id)) return { id, isPresent: false };
  if (entry !== null && isThere(entry, candidate)) return { id, isPresent: true };
  const other = clashingId(candidate.origin.sessionId, id);
  const taken = await store.getEntry(parentId, other);
  return { id: other, isPresent: taken !== null && isThere(taken, candidate) };
}

/**
 * The id of a merged entry whose own id is in use in the parent for something else; deterministic, so that repeated merges are
 * idempotent.
 */
export function clashingId(sessionId: string, entryId: string): string {
  return `${sessionId}/${entryId}`;
}

/** The variables that both sides have changed since the last merge, among those that the drafts change. */
export function conflictsOf(
  drafts: readonly EntryDraft[],
  { parent, branch, base }: { readonly parent: JsonObject; readonly branch: JsonObject; readonly base: JsonObject },
): MergeConflict[] {
  const keys = new Set(drafts.flatMap((draft) => (draft.type === "variables" ? changedBy(draft) : [])));
  const conflicts: MergeConflict[] = [];
  for (const key of keys) {
    const sides = { parent: valueIn(parent, key), branch: valueIn(branch, key), base: valueIn(base, key) };
    const bothChanged = !sameJson(sides.parent, sides.base) && !sameJson(sides.branch, sides.base);
    if (bothChanged && !sameJson(sides.parent, sides.branch)) conflicts.push(Object.freeze({ key, ...sides }));
  }
  return conflicts;
}

/** The branch's variables at the last merge, or else at the fork position. */
export async function baseVariables(
  store: SessionStore,
  branchId: string,
  newEntries: readonly Entry[],
  merged: ReadonlySet<string>,
): Promise<JsonObject> {
  const last = newEntries.findLast(({ id, type }) => type === "variables" && merged.has(id));
  const id = last?.id ?? newEntries[0]?.parentId ?? null;
  const path = id === null ? null : await store.path(branchId, id);
  return path === null ? {} : (await store.settings(branchId, path)).variables;
}

function changedBy({ set, unset }: Extract<EntryDraft, { type: "variables" }>): readonly string[] {
  return [...Object.keys(set), ...unset];
}

function valueIn(variables: JsonObject, key: string): JsonValue | undefined {
  return Object.hasOwn(variables, key) ? variables[key] : undefined;
}

/** Computes the result of an append, and the settings after it, without writing. */
export async function previewAppend(
  store: SessionStore,
  head: SessionHead,
  drafts: readonly EntryDraft[],
  options: AppendOptions & { readonly now: string },
): Promise<{ readonly plan: AppendPlan; readonly settings: Settings }> {
  const { now, ...asAppend } = options;
  const { id } = head.header;
  const checked = checkDrafts(drafts, { verbatim: asAppend.verbatim === true });
  const input = { head, drafts: checked, options: asAppend, now };
  const { plan } = await planLater(input, (wanted) => lookUp(store, id, wanted));
  const settings = await readSettings(plan.head.path.settings, async (seq) => {
    return plan.added[seq - head.version]?.path?.settings ?? settingsAt(store, id, seq);
  });
  return { plan, settings };
}

async function lookUp(store: SessionStore, sessionId: string, wanted: Wanted): Promise<Found> {
  const entries = new Map<string, StoredEntry>();
  for (const id of wanted.ids) {
    const entry = await store.getEntry(sessionId, id);
    if (entry !== null) entries.set(id, { entry, path: await store.path(sessionId, id) });
  }
  const settings = new Map<number, SettingsNode>();
  for (const seq of wanted.settings) settings.set(seq, await settingsAt(store, sessionId, seq));
  return { entries, settings };
}

async function settingsAt(store: SessionStore, sessionId: string, seq: number): Promise<SettingsNode> {
  for await (const { id } of store.read(sessionId, { after: seq - 1, limit: 1 })) {
    const settings = (await store.path(sessionId, id))?.settings;
    if (settings?.seq === seq) return settings;
  }
  throw new Error(
    `Entry ${seq} of session ${sessionId} is referenced as holding settings but holds none; the store is damaged.`,
  );
}
