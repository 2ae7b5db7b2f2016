import { checkArgument, isIterable } from "../check-arguments.ts";
import { createBrand } from "../../internal/brand.ts";
import { copyJson, NotJson } from "../../internal/json.ts";
import { PersistentVector } from "../../internal/persistent-vector.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { blobHash } from "../blob.ts";
import { checkedMessage } from "../checked-message.ts";
import { SessionError, show } from "../errors.ts";
import { checkName } from "../id.ts";
import type { AssistantMessage, Content, ContentPart, Message, ToolCall } from "../message.ts";

/** The kinds of rows in a transcript. */
export type RowKind = "system" | "user" | "assistant" | "tool_result";

/** One message of a transcript. Its `id` is that of its entry in the log. */
export interface Row {
  readonly kind: RowKind;
  readonly message: Message;
  readonly id: string;
}

/** A row as a caller passes it; without an id it gets a new one. */
export type RowInit = Omit<Row, "id" | "kind"> & { readonly id?: string; readonly kind?: RowKind };

const KIND_OF_ROLE = { system: "system", user: "user", assistant: "assistant", tool: "tool_result" } as const;

/** Rows that were checked, copied and frozen, so that they can be shared. */
const checked = createBrand();

/**
 * The messages of a session, in order. A transcript is immutable: `append` returns a new transcript that shares the rows of this one.
 *
 * Rows are frozen copies, so later changes to the caller's objects have no effect.
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

  /** Internal: where the beginning of a transcript is stored. */
  static originOf(transcript: Transcript): TranscriptOrigin | null {
    return transcript.#origin;
  }

  /** Internal: the same rows, with a note of where they are stored. */
  static withOrigin(transcript: Transcript, origin: Omit<TranscriptOrigin, "length">): Transcript {
    const copy = transcript.#copy(transcript.#rows);
    copy.#origin = { ...origin, length: transcript.length };
    return copy;
  }

  /** Internal: the summary that a run used in its requests in place of the first rows. */
  static compactionOf(transcript: Transcript): TranscriptCompaction | null {
    return transcript.#compaction;
  }

  /** Internal: the same rows, with a note of the summary that replaces the first of them in requests. */
  static withCompaction(transcript: Transcript, compaction: TranscriptCompaction): Transcript {
    const copy = transcript.#copy(transcript.#rows);
    copy.#compaction = compaction;
    return copy;
  }

  /**
   * The index of the first row whose token count can be used; counts before it include content that was edited later.
   */
  static firstCountedOf(transcript: Transcript): number {
    return transcript.#firstCounted;
  }

  /** The same rows, with a note of the first one whose token count can be used. */
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

  /** All rows as a frozen list, created on first use. */
  get rows(): readonly Row[] {
    this.#list ??= Object.freeze([...this.#rows]);
    return this.#list;
  }

  /** The row at an index; a negative index counts from the end. */
  at(index: number): Row | undefined {
    return this.#rows.at(index < 0 ? this.length + index : index);
  }

  /** A transcript with these rows added. The cost does not depend on the length of this transcript. */
  append(...rows: RowInit[]): Transcript {
    return this.appendAll(rows);
  }

  /** A transcript with any number of rows added. */
  appendAll(rows: Iterable<RowInit>): Transcript {
    checkArgument(isIterable(rows), rows, "appendAll", "a list of rows");
    const appended = this.#rows.append(checkedRows(rows));
    if (appended === this.#rows) return this;
    return this.#copy(appended);
  }

  /**
   * A transcript with the rows of another added. A row that is already in this transcript gets a new id, because a log
   * contains each id once; all others keep theirs. The cost depends on the other's rows, and on those rows of this
   * transcript that no earlier `concat` has indexed.
   */
  concat(other: Transcript): Transcript {
    checkArgument(other instanceof Transcript, other, "concat", "a transcript");
    return this.appendAll(apart(this.#rows, other));
  }

  /** The messages of the rows, in a provider-independent form. */
  toMessages(): Message[] {
    const messages: Message[] = [];
    for (const row of this.#rows) messages.push(row.message);
    return messages;
  }

  [Symbol.iterator](): Iterator<Row> {
    return this.#rows[Symbol.iterator]();
  }
}

/** A summary that replaces the first rows of a transcript in requests. The rows are still in the transcript. */
export interface TranscriptCompaction {
  /** The id of the summary's entry. */
  readonly id: string;
  readonly summary: string;
  /** The index of the first row that it does not replace. */
  readonly from: number;
}

/** Where the first rows of a transcript are stored, so that they need not be written again. */
export interface TranscriptOrigin {
  /** The store. */
  readonly store: object;
  readonly sessionId: string;
  /** The last entry on their path. */
  readonly entryId: string;
  /** The number of rows on that path. */
  readonly length: number;
  /**
   * The session's version when `resumeSession` read it; a run then continues that session. Absent if a run must create
   * a fork.
   */
  readonly resumedAt?: number;
}

/** A row with a user message. */
export function userRow(content: Content): Row {
  return rowOf({ message: { role: "user", content } });
}

/** A row with a system message. */
export function systemRow(content: Content): Row {
  return rowOf({ message: { role: "system", content } });
}

/** A row with a model's answer: calls, text, or both. */
export function assistantRow(toolCalls: readonly ToolCall[], content: Content | null = null): Row {
  checkArgument(Array.isArray(toolCalls), toolCalls, "assistantRow", "a list of tool calls");
  const calls: Partial<AssistantMessage> = toolCalls.length === 0 ? {} : { toolCalls };
  return rowOf({ message: { role: "assistant", content, ...calls } });
}

/** A row with a tool result: text or content parts as they are, other values as JSON. */
export function toolResultRow(callId: string, name: string, body: unknown): Row {
  const content = isContent(body) ? body : JSON.stringify(jsonOf(body ?? null, "body"));
  return rowOf({ message: { role: "tool", toolCallId: callId, name, content } });
}

/**
 * A row with any message.
 *
 * @throws {SessionError} `INVALID_ENTRY` or `INVALID_VALUE` for a message that a session cannot hold.
 */
export function rowOf(init: RowInit): Row {
  if (typeof init === "object" && init !== null && checked.has(init)) return init as Row;
  // Each field is read once: a getter could return one value to the check and another to the row.
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

/** The ids of rows that transcripts share, kept as long as one of these transcripts exists. */
const idsOfParts = new WeakMap<object, ReadonlySet<string>>();

function takenIds(rows: PersistentVector<Row>, lookups: number): readonly ReadonlySet<string>[] {
  const parts = [...rows.parts()];
  // With many lookups, searching many chunks costs more than merging them into one.
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
    (typeof part.data === "string" || (blobHash(part.blob) !== null && typeof part.bytes === "number"))
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
