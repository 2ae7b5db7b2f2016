import { uuidv7 } from "../../internal/uuid.ts";
import {
  type CompactionPlan,
  type CompactionSettings,
  prepareCompaction,
  shouldCompact,
} from "../../session/context/compaction.ts";
import { acceptable, compactionMessage, compactionSummaryOf } from "../../session/context/context.ts";
import { isReminder } from "../../session/context/reminder.ts";
import type { Entry, EntryOf } from "../../session/log/entry.ts";
import { type Message, textOf } from "../../session/message.ts";
import { messageTokens } from "../../session/context/tokens.ts";
import { refersToBlobs } from "../../stores/blobs/message-blobs.ts";
import { type Row, rowOf, Transcript } from "../../session/value/transcript.ts";

type CompactionBody = Omit<EntryOf<"compaction">, "seq" | "parentId" | "timestamp">;

/**
 * The content of the next request of a run: the agent's rows, the past (after the last compaction), and the run's own
 * rows. Adding a row takes constant time; the messages of a request are assembled when they are read.
 */
export class LoopContext {
  readonly #instructions: readonly Message[];
  #compaction: CompactionBody | null = null;
  /** The rows before the run, or those that a compaction kept. */
  #past: () => readonly Row[];
  #own: Row[] = [];
  /** Undefined if it was not computed since the rows changed. */
  #reminder: string | null | undefined;
  /** Whether a message refers to blobs; null: not looked for since the rows changed. */
  #blobs: boolean | null = null;
  /** The tokens up to the last answer with a count, plus an estimate for later rows; null until needed. */
  #tokens: number | null = null;
  readonly #firstCounted: number;
  #changes = 0;

  constructor(instructions: readonly Message[], past: Transcript) {
    this.#instructions = instructions;
    this.#firstCounted = Transcript.firstCountedOf(past);
    this.#past = this.#rowsOf(past);
  }

  /** How many times earlier messages were changed. */
  get changes(): number {
    return this.#changes;
  }

  /** Starts again with a transcript that was read again after an edit. */
  reset(transcript: Transcript): void {
    this.#changes += 1;
    this.#past = this.#rowsOf(transcript);
    this.#own = [];
    this.#tokens = this.#estimateTokens();
    this.#reminder = undefined;
    this.#blobs = null;
  }

  /** Replaces messages in requests only, by the ids of their rows. */
  replaceMessages(messages: ReadonlyMap<string, Message>): void {
    this.#changes += 1;
    const replaced = (row: Row): Row => {
      const message = messages.get(row.id);
      return message === undefined ? row : rowOf({ id: row.id, message });
    };
    const past = this.#past().map(replaced);
    this.#past = () => past;
    this.#own = this.#own.map(replaced);
    this.#tokens = this.#estimateTokens();
    this.#reminder = undefined;
    this.#blobs = null;
  }

  /** The rows before the last answer that is followed by more than `olderThan` messages, and that answer. */
  answeredRows(olderThan: number): { readonly rows: readonly Row[]; readonly answer: Row | null } {
    const rows = [...this.#past(), ...this.#own];
    const last = rows.findLastIndex(({ message }) => message.role === "assistant");
    const end = Math.min(last, rows.length - olderThan - 1);
    return { rows: end <= 0 ? [] : rows.slice(0, end), answer: last < 0 ? null : (rows[last] as Row) };
  }

  /** The rows of a transcript, without those that its summary replaces. */
  #rowsOf(past: Transcript): () => readonly Row[] {
    const known = Transcript.compactionOf(past) ?? summaryAtStart(past);
    this.#compaction = null;
    if (known !== null) {
      const { id, summary, from } = known;
      const firstKeptEntryId = past.at(from)?.id ?? id;
      this.#compaction = { type: "compaction", id, summary, firstKeptEntryId, tokensBefore: 0 };
    }
    return once(() => rowsFrom(past, known?.from ?? 0));
  }

  /** Whether a message of the next request refers to blobs, so that the messages need not be put together to tell. */
  get refersToBlobs(): boolean {
    this.#blobs ??=
      this.#instructions.some(refersToBlobs) ||
      [...this.#past(), ...this.#own].some(({ message }) => refersToBlobs(message));
    return this.#blobs;
  }

  /** The last reminder in the context; null if there is none. */
  get lastReminder(): string | null {
    if (this.#reminder === undefined) {
      const message = [...this.#past(), ...this.#own].findLast((row) => isReminder(row.message))?.message;
      this.#reminder = message === undefined ? null : textOf(message.content);
    }
    return this.#reminder;
  }

  push(row: Row): void {
    this.#own.push(row);
    if (isReminder(row.message)) this.#reminder = textOf(row.message.content);
    if (this.#blobs === false) this.#blobs = refersToBlobs(row.message);
    if (this.#tokens === null) return;
    const counted = countedTokens(row.message);
    this.#tokens = counted > 0 ? counted : this.#tokens + messageTokens(row.message);
  }

  /** The present messages; the function can be called later or never. */
  messages(): () => readonly Message[] {
    const [instructions, compaction, past, own] = [this.#instructions, this.#compaction, this.#past, this.#own];
    const count = own.length;
    return once(() => [
      ...instructions,
      ...acceptable([
        ...(compaction === null ? [] : [compactionMessage(compaction.summary)]),
        ...past().map((row) => row.message),
        ...own.slice(0, count).map((row) => row.message),
      ]),
    ]);
  }

  /** The approximate number of tokens of the next request. */
  get tokens(): number {
    this.#tokens ??= this.#countTokens();
    return this.#tokens;
  }

  isFull(contextWindow: number, settings: Partial<CompactionSettings>): boolean {
    return shouldCompact(this.tokens, contextWindow, settings);
  }

  /** The plan of a compaction; null if there is nothing to summarize. */
  plan(settings: Partial<CompactionSettings>): CompactionPlan | null {
    const entries = [...this.#past(), ...this.#own].map(entryOf);
    const path =
      this.#compaction === null
        ? entries
        : [{ ...this.#compaction, parentId: null, seq: 0, timestamp: "" } as Entry, ...entries];
    const plan = prepareCompaction(path, settings);
    return plan === null ? null : { ...plan, tokensBefore: this.tokens };
  }

  /** Replaces the rows that the plan drops by a summary. */
  compact(
    plan: CompactionPlan,
    summary: Omit<CompactionBody, "type" | "id" | "firstKeptEntryId" | "tokensBefore">,
  ): CompactionBody {
    // By index and not by id: a caller may pass the same row twice.
    const rows = [...this.#past(), ...this.#own].slice(-plan.keep.length);
    const { firstKeptEntryId, tokensBefore } = plan;
    this.#compaction = { ...summary, type: "compaction", id: uuidv7(), firstKeptEntryId, tokensBefore };
    this.#past = () => rows;
    this.#own = [];
    this.#tokens = this.#estimateTokens();
    this.#reminder = undefined;
    this.#blobs = null;
    return this.#compaction;
  }

  #countTokens(): number {
    const rows = [...this.#past(), ...this.#own];
    // After a summary, token counts of earlier answers may be outdated.
    const isCounted = (row: Row, index: number): boolean =>
      index >= this.#firstCounted && countedTokens(row.message) > 0;
    const last = this.#compaction === null ? rows.findLastIndex(isCounted) : -1;
    if (last < 0) return this.#estimateTokens();
    const since = rows.slice(last + 1).reduce((sum, row) => sum + messageTokens(row.message), 0);
    return countedTokens((rows[last] as Row).message) + since;
  }

  #estimateTokens(): number {
    const summary = this.#compaction === null ? [] : [compactionMessage(this.#compaction.summary)];
    const messages = [...this.#instructions, ...summary, ...[...this.#past(), ...this.#own].map((row) => row.message)];
    return messages.reduce((sum, message) => sum + messageTokens(message), 0);
  }
}

function entryOf(row: Row): Entry {
  return { type: "message", message: row.message, id: row.id, parentId: null, seq: 0, timestamp: "" };
}

function countedTokens(message: Message): number {
  if (message.role !== "assistant" || message.usage === undefined) return 0;
  if (message.stopReason === "aborted" || message.stopReason === "error") return 0;
  const { totalTokens, inputTokens, outputTokens } = message.usage;
  return totalTokens > 0 ? totalTokens : inputTokens + outputTokens;
}

/** The summary at the beginning of a transcript that was read from a log after a compaction; otherwise null. */
function summaryAtStart(past: Transcript): { id: string; summary: string; from: number } | null {
  const first = past.at(0);
  const summary = first === undefined ? null : compactionSummaryOf(first.message);
  return first === undefined || summary === null ? null : { id: first.id, summary, from: 1 };
}

function rowsFrom(transcript: Transcript, from: number): Row[] {
  const rows: Row[] = [];
  for (let index = from; index < transcript.length; index++) rows.push(transcript.at(index) as Row);
  return rows;
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | null = null;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
