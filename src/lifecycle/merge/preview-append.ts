import {
  type AppendPlan,
  type Found,
  planLater,
  type StoredEntry,
  type Wanted,
} from "../../session/log/append-plan.ts";
import { checkDrafts } from "../../session/log/draft.ts";
import type { EntryDraft } from "../../session/log/entry.ts";
import type { SessionHead } from "../../session/log/fold.ts";
import { readSettings, type Settings, type SettingsNode } from "../../session/log/settings.ts";
import type { AppendOptions, SessionStore } from "../../session/store.ts";

/** What an append would come to, and what would be set after it; nothing is written. */
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
  const { plan } = await planLater(input, (wanted) => look(store, id, wanted));
  const settings = await readSettings(plan.head.path.settings, async (seq) => {
    return plan.added[seq - head.version]?.path?.settings ?? settingsAt(store, id, seq);
  });
  return { plan, settings };
}

async function look(store: SessionStore, sessionId: string, wanted: Wanted): Promise<Found> {
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
  throw new Error(`Entry ${seq} of session ${sessionId} was said to hold settings, but does not.`);
}
