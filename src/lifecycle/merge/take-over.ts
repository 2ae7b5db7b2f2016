import { defined } from "../../internal/defined.ts";
import { type JsonObject, sameJson } from "../../internal/json.ts";
import { bodyOf, type Entry, type EntryDraft } from "../../session/log/entry.ts";
import type { Message } from "../../session/message.ts";

/** The origin of a merged turn; a turn created by a strategy has no `turnId` there. */
export type Origin = {
  readonly sessionId: string;
  readonly branchName: string | null;
  readonly turnId?: string;
};

/** An entry that a merge appends to the parent, unless the parent has it. */
export interface Candidate {
  readonly draft: EntryDraft & { readonly id: string };
  readonly origin: Origin;
  /** Its id identifies the merge and not the contents: an entry with this id counts as merged. */
  readonly once?: true;
}

/**
 * Converts a branch's node for the parent; null if it is not merged. Turns record their origin, and keep it in later merges.
 * Entries keep their author. An edit goes with the entry that it edits. Of settings only variables are merged: the parent keeps its prompt and tools.
 */
export function takeOver(entry: Entry | (EntryDraft & { readonly id: string }), origin: Origin): Candidate | null {
  const { id, timestamp, by } = entry;
  const stamp = { id, ...defined({ timestamp, by }) };
  switch (entry.type) {
    case "message":
      return { origin, draft: { type: "message", message: withOrigin(entry.message, origin), ...stamp } };
    case "custom_message":
    case "branch_summary":
    case "context_edit":
      return { origin, draft: { ...bodyOf(entry), ...stamp } as Candidate["draft"] };
    case "variables": {
      const { set, unset } = entry;
      if (Object.keys(set).length === 0 && unset.length === 0) return null;
      return { origin, draft: { type: "variables", set, unset, ...stamp } };
    }
    default:
      return null;
  }
}

/** Whether an entry of the parent already is this candidate. */
export function isThere(entry: Entry, { draft, once }: Candidate): boolean {
  if (once === true) return true;
  if (entry.type === "message" && draft.type === "message") {
    const [there, here] = [originOf(entry.message), originOf(draft.message)];
    return sameJson(there, here) || sameJson(withoutOrigin(entry.message), withoutOrigin(draft.message));
  }
  if (entry.type === "branch_summary" && draft.type === "branch_summary") {
    // Two summaries of the same branch at the same version count as one.
    const [there, here] = [summarized(entry.details), summarized(draft.details)];
    if (there !== undefined && there === here) return true;
  }
  return sameJson(bodyOf(entry), bodyOf(draft));
}

function withOrigin(message: Message, origin: Origin): Message {
  const { metadata = {} } = message;
  return originOf(message) === undefined ? { ...message, metadata: { ...metadata, mergedFrom: origin } } : message;
}

function withoutOrigin(message: Message): Message {
  const { metadata = {}, ...rest } = message;
  const { mergedFrom: _, ...own } = metadata;
  return { ...rest, metadata: own } as Message;
}

function originOf({ metadata }: Message): unknown {
  return metadata !== undefined && Object.hasOwn(metadata, "mergedFrom") ? metadata.mergedFrom : undefined;
}

function summarized(details: unknown): unknown {
  return (details as { mergedFrom?: JsonObject } | null | undefined)?.mergedFrom?.sessionId;
}
