import type { EditPreview } from "../session/context/edits.ts";
import { defined } from "../internal/defined.ts";
import { sameJson } from "../internal/json.ts";
import { checkArgument, checkOptionsOf, isObject } from "../session/check-arguments.ts";
import { acceptable, compactionMessage, contextPath, messagesOf } from "../session/context/context.ts";
import { messageTokens } from "../session/context/tokens.ts";
import { SessionError, show, UnknownEntryError } from "../session/errors.ts";
import { checkEdit, type EditInit } from "../session/log/context-edit.ts";
import type { Entry, EntryOf } from "../session/log/entry.ts";
import type { SessionHead } from "../session/log/fold.ts";
import { hasBegun } from "../session/log/run-fold.ts";
import type { OpenRun } from "../session/log/open-runs.ts";
import type { Message } from "../session/message.ts";
import type { SessionStore } from "../session/store.ts";
import { readContextEntries } from "./path-reader.ts";
import type { SessionTree } from "./session-tree.ts";

/** Options of `omit`. */
export interface OmitOptions {
  /** The reason, for readers of the log. */
  readonly reason?: string;
}

/** Leaves an entry out of the context of the path from here on. */
export function omit(tree: SessionTree, entryId: string, options: OmitOptions = {}): Promise<EntryOf<"context_edit">> {
  checkOptionsOf(options, { reason: true }, "omit");
  return edit(tree, "omit", entryId, { targetId: entryId, message: null, ...defined({ reason: options.reason }) });
}

/** Puts a message in the place of an entry in the context of the path from here on. */
export async function replace(
  tree: SessionTree,
  entryId: string,
  message: Message,
  options: OmitOptions = {},
): Promise<EntryOf<"context_edit">> {
  checkOptionsOf(options, { reason: true }, "replace");
  const draft = {
    targetId: entryId,
    message: replacementOf(message, "replace"),
    ...defined({ reason: options.reason }),
  };
  return edit(tree, "replace", entryId, draft);
}

/** Takes an edit back. */
export function undoEdit(tree: SessionTree, editId: string): Promise<EntryOf<"context_edit">> {
  return edit(tree, "undoEdit", editId, { undo: editId });
}

/** Computes what an edit would change, without appending it; for the id of an edit, what undoing it would. */
export async function previewEdit(tree: SessionTree, entryId: string, message?: Message | null): Promise<EditPreview> {
  const head = await tree.refresh();
  const target = await editable(tree, "previewEdit", entryId);
  const init: EditInit =
    target.type === "context_edit"
      ? { undo: entryId }
      : { targetId: entryId, message: message == null ? null : replacementOf(message, "previewEdit") };
  checkEdit(tree.id, init, target);
  if (head.leafId === null) return { tokensSaved: 0, prefixLost: 0 };
  const path = await readContextEntries(tree.store, head, head.leafId);
  const pretended = { type: "context_edit", id: "", parentId: head.leafId, timestamp: "", seq: head.version, ...init };
  const before = messagesIn(path, head);
  const after = messagesIn([...path, pretended as Entry], head);
  const changed = after.findIndex((each, index) => !sameJson(each, before[index] ?? null));
  const first = changed < 0 ? after.length : changed;
  const isSame = first === after.length && before.length === after.length;
  return {
    tokensSaved: tokensOf(before) - tokensOf(after),
    prefixLost: isSame ? 0 : tokensOf(after.slice(first)),
  };
}

function messagesIn(path: readonly Entry[], head: SessionHead): readonly Message[] {
  const { compaction, entries } = contextPath(path, new Set(head.undone));
  const summary = compaction === null ? [] : [compactionMessage(compaction.summary)];
  return acceptable([...summary, ...entries.flatMap(messagesOf)]);
}

function tokensOf(messages: readonly Message[]): number {
  return messages.reduce((sum, message) => sum + messageTokens(message), 0);
}

/** The content of a message, without the fields that only a model's answer has. */
function replacementOf(message: unknown, call: string): Message {
  checkArgument(isObject(message), message, call, "a message");
  const { usage: _usage, cost: _cost, providerData: _data, ...words } = message as Record<string, unknown>;
  return words as unknown as Message;
}

async function edit(
  tree: SessionTree,
  call: string,
  entryId: string,
  init: EditInit,
): Promise<EntryOf<"context_edit">> {
  const check = async (): Promise<void> => {
    const target = await editable(tree, call, entryId);
    checkEdit(tree.id, init, target);
    const edited = await editedBy(tree.store, tree.id, target);
    await checkAnswered(tree.store, tree.head, edited);
  };
  // Others may append during the check; then it is made again.
  const appended = await tree.appendIf({ type: "context_edit", ...init }, check, { holds: true });
  return appended as EntryOf<"context_edit">;
}

/** The entry that an edit names. @throws {SessionError} unless it is on the path to the leaf. */
async function editable(tree: SessionTree, call: string, entryId: string): Promise<Entry> {
  checkArgument(typeof entryId === "string", entryId, call, "the id of an entry");
  const entry = await tree.getEntry(entryId);
  if (entry === null) throw new UnknownEntryError(tree.id, entryId);
  if (await tree.isActive(entryId)) return entry;
  throw new SessionError(
    "INVALID_ENTRY",
    `Entry ${show(entryId)} of session ${tree.id} is not on the path to the leaf, where an edit would have its effect; move the leaf below it first.`,
  );
}

/** The entry that an edit, or the undoing of one, changes. */
async function editedBy(store: SessionStore, sessionId: string, entry: Entry): Promise<Entry> {
  let at = entry;
  while (at.type === "context_edit") {
    const next = await store.getEntry(sessionId, at.undo ?? at.targetId ?? "");
    // An edit always follows the entry that it names.
    if (next === null || next.seq >= at.seq) break;
    at = next;
  }
  return at;
}

/** @throws {SessionError} `RUN_OPEN` for an entry that a run still has to answer: its last answer, and all that follows it. */
async function checkAnswered(store: SessionStore, { header, openRuns }: SessionHead, target: Entry): Promise<void> {
  for (const run of openRuns.filter(hasBegun)) {
    if (await isAnswered(store, header.id, run, target)) continue;
    throw new SessionError(
      "RUN_OPEN",
      `Run ${show(run.runId)} of session ${header.id} is open and has not answered entry ${show(target.id)}; edit it when the run has answered it or has ended.`,
    );
  }
}

/** Whether an answer of an open run, or its beginning, follows the entry. */
async function isAnswered(
  store: SessionStore,
  sessionId: string,
  { runId, first }: OpenRun,
  { seq: after }: Entry,
): Promise<boolean> {
  for await (const entry of store.read(sessionId, { reverse: true, after })) {
    // Before format 3, entries did not name their run, and the beginning of a run was not known.
    const isOfRun = (entry.run ?? runId) === runId;
    if (isOfRun && entry.type === "message" && entry.message.role === "assistant") return true;
    if (entry.seq === first) return true;
    if (first === undefined && entry.type === "run" && entry.runId === runId) return true;
  }
  return false;
}
