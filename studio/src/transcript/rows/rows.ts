import type { Entry, EntryOf } from "../../../../src/session/log/entry.ts";
import type { AssistantMessage, InputMessage, ToolMessage } from "../../../../src/session/message.ts";

/** An entry that holds a message of that kind. */
export type MessageEntry<M> = EntryOf<"message"> & { readonly message: M };

interface RowBase {
  /** The id of the entry that the row stands for. */
  readonly id: string;
  /** The last entry that the row shows; to branch after the row is to branch there. */
  readonly endId: string;
  /** Says whether two rows show the same, so that a row that does is not drawn again. */
  readonly signature: string;
}

/** One thing in the transcript. */
export type Row = RowBase &
  (
    | { readonly kind: "turn"; readonly entry: MessageEntry<InputMessage> }
    | {
        readonly kind: "answer";
        readonly entry: MessageEntry<AssistantMessage>;
        /** What the tools answered, by the id of the call. */
        readonly results: ReadonlyMap<string, MessageEntry<ToolMessage>>;
        /** The user turn that it answers, where that is loaded. */
        readonly question: MessageEntry<InputMessage> | null;
      }
    | { readonly kind: "result"; readonly entry: MessageEntry<ToolMessage> }
    | { readonly kind: "summary"; readonly entry: EntryOf<"compaction"> | EntryOf<"branch_summary"> }
    | { readonly kind: "custom"; readonly entry: EntryOf<"custom_message"> }
    | { readonly kind: "note"; readonly entry: Entry }
  );

/** The rows of a path: each answer with what its tools said, everything else on its own. */
export function rowsOf(entries: readonly Entry[]): readonly Row[] {
  const rows: Row[] = [];
  let question: MessageEntry<InputMessage> | null = null;
  for (const entry of entries) {
    if (entry.type !== "message") {
      rows.push(rowOf(entry));
      continue;
    }
    const { message } = entry;
    if (message.role === "tool") {
      takeResult(rows, entry as MessageEntry<ToolMessage>);
    } else if (message.role === "assistant") {
      const answer = entry as MessageEntry<AssistantMessage>;
      rows.push({ kind: "answer", entry: answer, results: new Map(), question, ...baseOf(entry) });
    } else {
      const turn = entry as MessageEntry<InputMessage>;
      if (message.role === "user") question = turn;
      rows.push({ kind: "turn", entry: turn, ...baseOf(entry) });
    }
  }
  return rows;
}

function rowOf(entry: Exclude<Entry, { type: "message" }>): Row {
  if (entry.type === "compaction" || entry.type === "branch_summary") {
    return { kind: "summary", entry, ...baseOf(entry) };
  }
  return entry.type === "custom_message"
    ? { kind: "custom", entry, ...baseOf(entry) }
    : { kind: "note", entry, ...baseOf(entry) };
}

function baseOf({ id }: Entry): RowBase {
  return { id, endId: id, signature: id };
}

/** Puts a tool's answer to the call it belongs to; one whose call is not loaded stands alone. */
function takeResult(rows: Row[], entry: MessageEntry<ToolMessage>): void {
  const { toolCallId } = entry.message;
  for (let index = rows.length - 1; index >= 0; index--) {
    const row = rows[index] as Row;
    if (row.kind !== "answer") continue;
    if (row.entry.message.toolCalls?.some(({ id }) => id === toolCallId) !== true) continue;
    const results = new Map(row.results).set(toolCallId, entry);
    const isLast = index === rows.length - 1;
    const endId = isLast ? entry.id : row.endId;
    rows[index] = { ...row, results, endId, signature: `${row.signature} ${entry.id}` };
    return;
  }
  rows.push({ kind: "result", entry, ...baseOf(entry) });
}

/** The last user turn of a path, which a run on it was to answer. */
export function lastQuestion(entries: readonly Entry[]): MessageEntry<InputMessage> | null {
  const found = entries.findLast((entry) => entry.type === "message" && entry.message.role === "user");
  return (found as MessageEntry<InputMessage> | undefined) ?? null;
}
