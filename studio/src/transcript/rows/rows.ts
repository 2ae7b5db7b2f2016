import type { Entry, EntryOf } from "../../../../src/session/log/entry.ts";
import type { AssistantMessage, InputMessage, ToolMessage } from "../../../../src/session/message.ts";

/** An entry with a message of that kind. */
export type MessageEntry<M> = EntryOf<"message"> & { readonly message: M };

/** One answer of a model, with the results of its tools. */
export interface Round {
  readonly entry: MessageEntry<AssistantMessage>;
  /** The results of the tools, by the id of the call. */
  readonly results: ReadonlyMap<string, MessageEntry<ToolMessage>>;
  /** The time of the entry before the round; null if it is not loaded. */
  readonly since: string | null;
}

interface RowBase {
  /** The id of the first entry that the row shows. */
  readonly id: string;
  /** All entries of the row, including those that are not shown. */
  readonly ids: readonly string[];
  /** The entry to branch from to continue after the row. */
  readonly endId: string;
}

/** A row of the transcript. */
export type Row = RowBase &
  (
    | { readonly kind: "turn"; readonly entry: MessageEntry<InputMessage> }
    | {
        readonly kind: "answer";
        /** The answer of the last round. */
        readonly entry: MessageEntry<AssistantMessage>;
        readonly rounds: readonly Round[];
        /** The user turn that it answers, if it is loaded. */
        readonly question: MessageEntry<InputMessage> | null;
      }
    | { readonly kind: "result"; readonly entry: MessageEntry<ToolMessage> }
    | { readonly kind: "summary"; readonly entry: EntryOf<"compaction"> | EntryOf<"branch_summary"> }
    | { readonly kind: "custom"; readonly entry: EntryOf<"custom_message"> }
    | { readonly kind: "note"; readonly entry: Entry }
  );

type AnswerRow = Extract<Row, { kind: "answer" }>;

/**
 * The rows of a path: one row for all rounds of an answer with their tool results, one for every other entry. Settings
 * and records are only included if wanted.
 */
export function rowsOf(entries: readonly Entry[], records: boolean): readonly Row[] {
  const rows: Row[] = [];
  let question: MessageEntry<InputMessage> | null = null;
  let unseen: readonly string[] = [];
  const add = (row: Row): void => {
    rows.push({ ...row, ids: [...unseen, ...row.ids] });
    unseen = [];
  };
  for (const [index, entry] of entries.entries()) {
    if (!records && isRecord(entry)) {
      // A link to such an entry leads to the row before it.
      if (!extend(rows, rows.length - 1, entry.id)) unseen = [...unseen, entry.id];
    } else if (entry.type !== "message") {
      add(rowOf(entry));
    } else if (entry.message.role === "tool") {
      const result = entry as MessageEntry<ToolMessage>;
      if (!takeResult(rows, result)) add({ kind: "result", entry: result, ...baseOf(entry) });
    } else if (entry.message.role === "assistant") {
      const answer = entry as MessageEntry<AssistantMessage>;
      const round = { entry: answer, results: new Map(), since: entries[index - 1]?.timestamp ?? null };
      if (!takeRound(rows, round)) {
        add({ kind: "answer", entry: answer, rounds: [round], question, ...baseOf(entry) });
      }
    } else {
      const turn = entry as MessageEntry<InputMessage>;
      if (entry.message.role === "user") question = turn;
      add({ kind: "turn", entry: turn, ...baseOf(entry) });
    }
  }
  return rows;
}

/** Whether an entry records settings or data, and is not part of the conversation. */
function isRecord(entry: Entry): boolean {
  if (entry.type === "custom_message") return !entry.display;
  return !["message", "compaction", "branch_summary", "erased", "lost"].includes(entry.type);
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
  return { id, ids: [id], endId: id };
}

/** Adds an entry to a row, which then ends with it if only notes follow the row; false without such a row. */
function extend(rows: Row[], index: number, id: string): boolean {
  const row = rows[index];
  if (row === undefined) return false;
  const isLast = rows.slice(index + 1).every(({ kind }) => kind === "note");
  rows[index] = { ...row, ids: [...row.ids, id], endId: isLast ? id : row.endId };
  return true;
}

/** Adds a round to the answer that it continues: the row before it, if that has tool calls of the same speaker. */
function takeRound(rows: Row[], round: Round): boolean {
  const index = rows.findLastIndex(({ kind }) => kind !== "note");
  const row = rows[index];
  if (row?.kind !== "answer" || (row.entry.message.toolCalls ?? []).length === 0) return false;
  if (row.entry.message.agent !== round.entry.message.agent) return false;
  rows[index] = { ...row, entry: round.entry, rounds: [...row.rounds, round] };
  return extend(rows, index, round.entry.id);
}

/** Adds a tool result to the row of its call; false if that is not loaded. */
function takeResult(rows: Row[], entry: MessageEntry<ToolMessage>): boolean {
  const { toolCallId } = entry.message;
  const isCalled = ({ entry: { message } }: Round): boolean =>
    message.toolCalls?.some(({ id }) => id === toolCallId) === true;
  const index = rows.findLastIndex((row) => row.kind === "answer" && row.rounds.some(isCalled));
  if (index < 0) return false;
  const row = rows[index] as AnswerRow;
  const at = row.rounds.findLastIndex(isCalled);
  const round = row.rounds[at] as Round;
  const results = new Map(round.results).set(toolCallId, entry);
  rows[index] = { ...row, rounds: row.rounds.with(at, { ...round, results }) };
  return extend(rows, index, entry.id);
}

/** The last user turn of a path, which a run should have answered. */
export function lastQuestion(entries: readonly Entry[]): MessageEntry<InputMessage> | null {
  const found = entries.findLast((entry) => entry.type === "message" && entry.message.role === "user");
  return (found as MessageEntry<InputMessage> | undefined) ?? null;
}

/** Whether a path ends with tool calls or results, so that the next answer continues the last one. */
export function isUnfinished(entries: readonly Entry[]): boolean {
  const last = entries.findLast((entry) => entry.type === "message");
  if (last?.type !== "message") return false;
  const { message } = last;
  return message.role === "tool" || (message.role === "assistant" && (message.toolCalls ?? []).length > 0);
}
