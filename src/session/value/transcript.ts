import { checkArgument, isIterable } from "../check-arguments.ts";
import { createBrand } from "../../internal/brand.ts";
import { copyJson, NotJson } from "../../internal/json.ts";
import { PersistentVector } from "../../internal/persistent-vector.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { checkedMessage } from "../checked-message.ts";
import { SessionError, show } from "../errors.ts";
import { checkName } from "../id.ts";
import type { AssistantMessage, Content, ContentPart, Message, ToolCall } from "../message.ts";

/** What a row of a transcript is. */
export type RowKind = "system" | "user" | "assistant" | "tool_result";

/** One message of a transcript. Its `id` is that of the entry which holds it in a log. */
export interface Row {
  readonly kind: RowKind;
  readonly message: Message;
  readonly id: string;
}

/** A row as a caller may give it; without an id it gets a new one. */
export type RowInit = Omit<Row, "id" | "kind"> & { readonly id?: string; readonly kind?: RowKind };

const KIND_OF_ROLE = { system: "system", user: "user", assistant: "assistant", tool: "tool_result" } as const;

/** Rows that were checked, copied and frozen, so that sharing them is safe. */
const checked = createBrand();

/**
 * What was said, in order. A transcript never changes: `append` gives a new one that shares its rows with the old.
 *
 * Rows are frozen copies of what a caller gave, so that no later change of the caller's reaches them.
 */
export class Transcript {
  static readonly empty: Transcript = new Transcript(PersistentVector.empty());

  readonly #rows: PersistentVector<Row>;
  #list: readonly Row[] | null = null;
  #origin: TranscriptOrigin | null = null;
  #compaction: TranscriptCompaction | null = null;
  #firstCounted = 0;

  private constructor(rows: PersistentVector<Row>) {
    this.#rows = rows;
  }

  /** A transcript of these rows. */
  static of(rows: Iterable<RowInit>): Transcript {
    return Transcript.empty.appendAll(rows);
  }

  /** Where the beginning of a transcript is kept; for the code that keeps it. */
  static originOf(transcript: Transcript): TranscriptOrigin | null {
    return transcript.#origin;
  }

  /** The same rows, with a note of where they are kept. */
  static withOrigin(transcript: Transcript, origin: Omit<TranscriptOrigin, "length">): Transcript {
    const copy = transcript.#copy(transcript.#rows);
    copy.#origin = { ...origin, length: transcript.length };
    return copy;
  }

  /** What a run put instead of the first rows, in its requests; for the next run. */
  static compactionOf(transcript: Transcript): TranscriptCompaction | null {
    return transcript.#compaction;
  }

  /** The same rows, with a note of what stands for the first of them in a request. */
  static withCompaction(transcript: Transcript, compaction: TranscriptCompaction): Transcript {
    const copy = transcript.#copy(transcript.#rows);
    copy.#compaction = compaction;
    return copy;
  }

  /** The index of the first row whose token count is trusted: those before it count what an edit has changed since. */
  static firstCountedOf(transcript: Transcript): number {
    return transcript.#firstCounted;
  }

  /** The same rows, with a note of the first one whose token count is trusted. */
  static withFirstCounted(transcript: Transcript, index: number): Transcript {
    const copy = transcript.#copy(transcript.#rows);
    copy.#firstCounted = index;
    return copy;
  }

  #copy(rows: PersistentVector<Row>): Transcript {
    const copy = new Transcript(rows);
    copy.#origin = this.#origin;
    copy.#compaction = this.#compaction;
    copy.#firstCounted = this.#firstCounted;
    return copy;
  }

  get length(): number {
    return this.#rows.length;
  }

  /** All rows as a frozen list, made when it is first asked for. */
  get rows(): readonly Row[] {
    this.#list ??= Object.freeze([...this.#rows]);
    return this.#list;
  }

  /** The row at an index, counted from the end when it is negative. */
  at(index: number): Row | undefined {
    return this.#rows.at(index < 0 ? this.length + index : index);
  }

  /** This transcript and these rows. Costs what the new rows cost, whatever the length. */
  append(...rows: RowInit[]): Transcript {
    return this.appendAll(rows);
  }

  /** This transcript and any number of rows. */
  appendAll(rows: Iterable<RowInit>): Transcript {
    checkArgument(isIterable(rows), rows, "appendAll", "a list of rows");
    const appended = this.#rows.append(checkedRows(rows));
    if (appended === this.#rows) return this;
    return this.#copy(appended);
  }

  /**
   * This transcript and the rows of another. A row that stands here already gets a new id, as a log holds each id once;
   * all others keep theirs. Costs what the other's rows cost, and a look at those rows of this one that no earlier
   * `concat` to it, or to what it was made of, has seen.
   */
  concat(other: Transcript): Transcript {
    checkArgument(other instanceof Transcript, other, "concat", "a transcript");
    return this.appendAll(apart(this.#rows, other));
  }

  /** The messages of the rows, in no provider's dialect. */
  toMessages(): Message[] {
    const messages: Message[] = [];
    for (const row of this.#rows) messages.push(row.message);
    return messages;
  }

  [Symbol.iterator](): Iterator<Row> {
    return this.#rows[Symbol.iterator]();
  }
}

/** A summary that stands for the first rows of a transcript in a request. The rows themselves are still there. */
export interface TranscriptCompaction {
  /** The id of its entry. */
  readonly id: string;
  readonly summary: string;
  /** The first row that it does not stand for. */
  readonly from: number;
}

/** Where the first rows of a transcript are kept, so that they need not be written again. */
export interface TranscriptOrigin {
  /** The store that holds them. */
  readonly store: object;
  readonly sessionId: string;
  /** The last entry on their path. */
  readonly entryId: string;
  /** How many rows that path stands for. */
  readonly length: number;
  /** The session's version when `resumeSession` read it, so that a run goes on in it; left out where a run would be a fork. */
  readonly resumedAt?: number;
}

/** A row of what a person says. */
export function userRow(content: Content): Row {
  return rowOf({ message: { role: "user", content } });
}

/** A row of what the system sets. */
export function systemRow(content: Content): Row {
  return rowOf({ message: { role: "system", content } });
}

/** A row of what a model answers: calls, text, or both. */
export function assistantRow(toolCalls: readonly ToolCall[], content: Content | null = null): Row {
  checkArgument(Array.isArray(toolCalls), toolCalls, "assistantRow", "a list of tool calls");
  const calls: Partial<AssistantMessage> = toolCalls.length === 0 ? {} : { toolCalls };
  return rowOf({ message: { role: "assistant", content, ...calls } });
}

/** A row of what a tool answers: a text or content parts as they are, anything else as JSON. */
export function toolResultRow(callId: string, name: string, body: unknown): Row {
  const content = isContent(body) ? body : JSON.stringify(jsonOf(body ?? null, "body"));
  return rowOf({ message: { role: "tool", toolCallId: callId, name, content } });
}

/**
 * A row of any message.
 *
 * @throws {SessionError} `INVALID_ENTRY` or `INVALID_VALUE` for a message that a session cannot hold.
 */
export function rowOf(init: RowInit): Row {
  if (typeof init === "object" && init !== null && checked.has(init)) return init as Row;
  // Each field is read once: a getter could answer the check with one value and the row with another.
  const { message: given, kind: kindGiven, id } = init ?? {};
  const message = checkedMessage(given);
  const kind = KIND_OF_ROLE[message.role];
  if (kindGiven !== undefined && kindGiven !== kind) {
    throw new SessionError(
      "INVALID_ENTRY",
      `A row of the kind ${show(kindGiven)} cannot hold a message of the role "${message.role}".`,
    );
  }
  if (id !== undefined) checkName(id, "a row");
  return sealed(kind, message, id ?? uuidv7());
}

function sealed(kind: RowKind, message: Message, id: string): Row {
  const row: Row = { kind, message, id };
  checked.add(row);
  return Object.freeze(row);
}

function* apart(mine: PersistentVector<Row>, theirs: Transcript): Generator<Row> {
  const taken = takenIds(mine, theirs.length);
  for (const row of theirs) {
    yield taken.some((ids) => ids.has(row.id)) ? sealed(row.kind, row.message, uuidv7()) : row;
  }
}

/** The ids of rows that transcripts share, as long as one of these is there. */
const idsOfParts = new WeakMap<object, ReadonlySet<string>>();

function takenIds(rows: PersistentVector<Row>, lookups: number): readonly ReadonlySet<string>[] {
  const parts = [...rows.parts()];
  // Where much is looked for, looking in many chunks costs more than making one of them.
  if (lookups * parts.length > rows.length) return [idsOf(rows)];
  return parts.map(({ key, items }) => {
    const ids = idsOfParts.get(key) ?? idsOf(items());
    idsOfParts.set(key, ids);
    return ids;
  });
}

function idsOf(rows: Iterable<Row>): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const { id } of rows) ids.add(id);
  return ids;
}

function isContent(body: unknown): body is Content {
  return typeof body === "string" || (Array.isArray(body) && body.length > 0 && body.every(isPart));
}

function isPart(value: unknown): value is ContentPart {
  const part = (value ?? {}) as Readonly<Record<string, unknown>>;
  if (part.type === "text" || part.type === "thinking") return typeof part.text === "string";
  return (
    (part.type === "image" || part.type === "file") &&
    typeof part.mediaType === "string" &&
    typeof part.data === "string"
  );
}

function checkedRows(rows: Iterable<RowInit>): Row[] {
  const checkedOnes: Row[] = [];
  for (const row of rows) checkedOnes.push(rowOf(row));
  return checkedOnes;
}

function jsonOf(value: unknown, path: string): unknown {
  try {
    return copyJson(value, path);
  } catch (error) {
    if (error instanceof NotJson) throw new SessionError("INVALID_VALUE", `${error.message}.`, { cause: error });
    throw error;
  }
}
