import { type Entry, type EntryOf, type Message, SessionError, type SessionHead, SessionTree } from "../../../index.ts";
import { show } from "../../../session/errors.ts";
import { type Command, textOption } from "../../command.ts";
import { ENTRY_NAMES, findEntry, findSession, SESSION_ARGUMENT } from "../../options/session-reference.ts";

const ENTRY_ARGUMENT = { name: "entry", what: `the entry: ${ENTRY_NAMES}` };

/** Leaves an entry out of what models see, or shortens it. */
export const omit: Command = {
  name: "omit",
  summary: "Leave an entry out of what models see from here on, or put a shorter text in its place; the log keeps it.",
  arguments: [SESSION_ARGUMENT, ENTRY_ARGUMENT],
  options: {
    text: { value: "TEXT", what: "what models see instead of the entry (default: nothing)" },
    reason: { value: "TEXT", what: "why; for people who read the log" },
    preview: { what: "only print how many tokens it would save and how many a cache would lose" },
  },
  examples: [
    { line: "skein omit last 12 --preview", what: "what it would save" },
    { line: 'skein omit last 12 --reason "2 MB of log output"', what: "leave the entry out" },
    { line: 'skein omit last 12 --text "1 failed: checkout"', what: "put a short text in its place" },
  ],
  json: {
    sessionId: "the session's id",
    entryId: "the entry's id",
    edit: "the id of the edit; null with --preview",
    tokensSaved: "how many tokens fewer each later request has, by estimate",
    prefixLost: "how many tokens a provider's cache has to read anew, once",
  },
  store: "existing",
  async run(context) {
    const [session = "", reference = ""] = context.positionals;
    await using store = await context.openStore();
    const head = await findSession(store, session);
    const entry = await findEntry(store, head, reference);
    const tree = await SessionTree.on(store, head.header.id);
    const [text, reason] = [textOption(context.values, "text"), textOption(context.values, "reason")];
    const message = text === undefined ? null : messageInstead(head, entry, text);
    const { tokensSaved, prefixLost } = await tree.previewEdit(entry.id, message);
    const isPreview = context.values["preview"] === true;
    const why = reason === undefined ? {} : { reason };
    const edit = isPreview
      ? null
      : message === null
        ? await tree.omit(entry.id, why)
        : await tree.replace(entry.id, message, why);
    const result = { sessionId: tree.id, entryId: entry.id, edit: edit?.id ?? null, tokensSaved, prefixLost };
    if (context.json) context.printJson(result);
    else context.print(sentenceOf(result));
    return 0;
  },
};

/** Takes an edit back. */
export const undoEdit: Command = {
  name: "undo-edit",
  summary: "Take an edit of the context back: models see again what was said.",
  arguments: [
    SESSION_ARGUMENT,
    { name: "edit", optional: true, what: `the edit: ${ENTRY_NAMES} (default: the last edit)` },
  ],
  options: {},
  examples: [{ line: "skein undo-edit last", what: "take the last edit of the latest session back" }],
  json: {
    sessionId: "the session's id",
    edit: "the id of the edit that was undone",
    entry: "the entry that undoes it",
  },
  store: "existing",
  async run(context) {
    const [session = "", reference] = context.positionals;
    await using store = await context.openStore();
    const head = await findSession(store, session);
    const tree = await SessionTree.on(store, head.header.id);
    const edit = reference === undefined ? await lastEdit(tree) : await findEntry(store, head, reference);
    const entry = await tree.undoEdit(edit.id);
    if (context.json) context.printJson({ sessionId: tree.id, edit: edit.id, entry });
    else context.print(`Edit ${edit.id} of session ${tree.id} was undone.`);
    return 0;
  },
};

function sentenceOf(result: { entryId: string; edit: string | null; tokensSaved: number; prefixLost: number }): string {
  const { entryId, edit, tokensSaved, prefixLost } = result;
  const numbers = `each later request has ${tokensSaved} tokens fewer, and a cache reads ${prefixLost} tokens anew, once`;
  if (edit === null) return `If entry ${entryId} is edited so, ${numbers}.`;
  return `Models do not see entry ${entryId} as it was said any more: ${numbers}. The edit is ${edit}.`;
}

/** A message with a text in the place of what an entry says. */
function messageInstead({ header }: SessionHead, entry: Entry, content: string): Message {
  if (entry.type === "message") return { ...entry.message, content } as Message;
  if (entry.type === "custom_message" || entry.type === "branch_summary") return { role: "user", content };
  throw new SessionError(
    "INVALID_ENTRY",
    `Entry ${show(entry.id)} of session ${header.id} is a ${entry.type} entry, which models do not see; name a message.`,
  );
}

/** The latest edit on the path that is not undone. */
async function lastEdit(tree: SessionTree): Promise<EntryOf<"context_edit">> {
  const undone = new Set<string>();
  for (const entry of (await tree.contextEntries()).toReversed()) {
    if (entry.type !== "context_edit" || undone.has(entry.id)) continue;
    if (entry.undo === undefined) return entry;
    undone.add(entry.undo);
  }
  throw new SessionError(
    "UNKNOWN_ENTRY",
    `The context of session ${tree.id} has no edit to undo; skein tree shows its entries.`,
  );
}
