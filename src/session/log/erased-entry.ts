import { defined } from "../../internal/defined.ts";
import { sameJson } from "../../internal/json.ts";
import type { Checkpoint } from "../store.ts";
import { type Entry, type EntryBody, type EntryOf, isKnownType, isNode } from "./entry.ts";

const REASON = "erased on request";

/**
 * Returns the replacement for an entry whose content is erased. A node becomes an `erased` entry, so that the tree keeps its
 * shape. An edit leaves out its target from then on. A fact keeps the fields that the session's state depends on and
 * loses its texts. The user who caused it is removed.
 */
export function erasedEntry({ by: _by, ...entry }: Entry): Entry {
  const { id, parentId, timestamp, seq, run, inherited, type } = entry as Entry;
  const stamp = { id, parentId, timestamp, seq, ...defined({ run }), ...(inherited === true && { inherited }) };
  if (entry.type === "erased") {
    // The entry may have been appended by a program with a user's words in these fields.
    const was = isKnownType(entry.was) ? entry.was : "message";
    return { type, was, ...(entry.reason !== undefined && { reason: REASON }), ...stamp } as Entry;
  }
  if (entry.type === "context_edit") return { ...editWithoutWords(entry as EntryOf<"context_edit">), ...stamp };
  if (isNode(entry)) return { type: "erased", was: type, reason: REASON, ...stamp };
  return { ...factWithoutWords(entry as Entry), ...stamp } as Entry;
}

/** Returns the replacement for a checkpoint whose author is erased: it keeps the position and the files. */
export function erasedCheckpoint({ by: _by, ...checkpoint }: Checkpoint): Checkpoint {
  return { ...checkpoint, metadata: {} };
}

/** Whether an entry has nothing left to erase. */
export function isErased(entry: Entry): boolean {
  return sameJson(erasedEntry(entry), entry);
}

/** An edit keeps its position: what it hid from models stays hidden, and its replacement becomes empty. */
function editWithoutWords({ targetId, undo }: EntryOf<"context_edit">): EntryBody {
  return undo === undefined
    ? { type: "context_edit", ...defined({ targetId }), message: null }
    : { type: "context_edit", undo };
}

function factWithoutWords(entry: Entry): object {
  const { type } = entry;
  switch (entry.type) {
    case "leaf":
    case "compaction_undone":
    case "prune":
      return { type, targetId: entry.targetId };
    case "label":
      return { type, targetId: entry.targetId, label: null };
    case "session_info":
      return { type, name: "" };
    case "status":
      return { type, status: entry.status };
    case "run": {
      const { error: _error, output: _output, ...rest } = entry;
      return rest;
    }
    case "run_request": {
      const { options: _options, messages: _messages, model: _model, ...rest } = entry;
      return { ...rest, input: "" };
    }
    case "cancel":
      return { type, runId: entry.runId };
    case "approval": {
      const { note: _note, asked: _asked, decision, ...rest } = entry;
      return decision === undefined ? rest : { ...rest, decision: { approved: isApproval(decision) } };
    }
    case "queued":
      return { type, runId: entry.runId, kind: entry.kind, content: "" };
    case "run_blocked":
      return { ...entry, message: "" };
    case "run_parked":
    case "trailer":
    case "effect":
      return entry;
    default:
      return { type };
  }
}

function isApproval(decision: unknown): boolean {
  return typeof decision === "object" && decision !== null && "approved" in decision && decision.approved === true;
}
