import { createBrand } from "../../internal/brand.ts";
import { copyJsonWithout, JSON_DEPTH_MAX, type JsonObject, NotJson } from "../../internal/json.ts";
import { uuidv7 } from "../../internal/uuid.ts";
import { isCheckedMessage } from "../checked-message.ts";
import { bodyOf, type EntryBody, type EntryDraft, isKnownType, STAMP_FIELDS } from "./entry.ts";
import { bodyProblem, excessProblem } from "./entry-check.ts";
import { SessionError, show } from "../errors.ts";
import { isTimestamp } from "./header.ts";
import { checkName, isName } from "../id.ts";
import { APPEND_ENTRIES_MAX, ENTRY_BYTES_MAX } from "../limits.ts";
import { answerIdOf, blockedIdOf, inputIdOf, isReservedId, isRunId, moveIdOf, requestIdOf } from "./open-runs.ts";

/**
 * A checked draft. It is a copy, unless the caller gave the draft away, so later changes by the caller have no effect.
 */
export interface CheckedDraft {
  readonly id: string;
  /** The id was generated here, so no stored entry can have it. */
  readonly fresh: boolean;
  readonly timestamp: string | null;
  /** The parent, for an entry copied from another log; otherwise undefined: the store decides. */
  readonly parentId: string | null | undefined;
  /** The user who caused the entry. */
  readonly by: string | undefined;
  /** The run that appends the entry. */
  readonly run: string | undefined;
  readonly inherited: true | undefined;
  readonly body: EntryBody;
  /** Compares it with a stored entry of its id that may hold the same images and files in another form. */
  readonly isSame?: (stored: EntryBody) => boolean;
}

/** A draft with every field that a copied entry can have. */
export type WholeDraft = EntryDraft & {
  readonly id: string;
  readonly parentId: string | null;
  readonly timestamp: string;
};

/** Checked drafts that their callers gave away. */
const given = createBrand();

/**
 * Gives a draft away: `create` then stores it without copying it. It must consist of JSON values that no one else
 * refers to. Returns false if a log cannot store it, or if it exceeds the limits of a new entry.
 */
export function giveDraft(draft: WholeDraft): boolean {
  if (!isName(draft.id) || !isTimestamp(draft.timestamp) || sizeOf(draft) > ENTRY_BYTES_MAX) return false;
  if (bodyProblem(draft as unknown as JsonObject) !== null || excessProblem(draft) !== null) return false;
  given.add(draft);
  return true;
}

/** Options for all drafts of one append. */
interface DraftOptions {
  readonly verbatim: boolean;
  readonly by?: string | undefined;
  readonly run?: string | undefined;
}

/**
 * Checks and copies the drafts of one append.
 *
 * @throws {SessionError} `INVALID_ENTRY`, `INVALID_VALUE`, `INVALID_ID` or `TOO_LARGE`, naming the draft.
 */
export function checkDrafts(drafts: readonly EntryDraft[], options: DraftOptions): CheckedDraft[] {
  if (!Array.isArray(drafts)) throw new SessionError("INVALID_ENTRY", "The entries to append are not a list.");
  if (!options.verbatim && drafts.length > APPEND_ENTRIES_MAX) {
    throw new SessionError(
      "TOO_LARGE",
      `One append takes at most ${APPEND_ENTRIES_MAX} entries, not ${drafts.length}; append them in parts.`,
    );
  }
  const checked: CheckedDraft[] = [];
  // A loop, because `map` skips the holes of a sparse array and `Array.from` is slower; every append runs this.
  for (let index = 0; index < drafts.length; index++) {
    const what = drafts.length === 1 ? "The entry" : `Entry ${index}`;
    checked.push(checkDraft(drafts[index] as EntryDraft, what, options));
  }
  if (!options.verbatim) checkReservedIds(checked);
  return checked;
}

/**
 * The id of a request or an answer is derived from its run or its question. Entries of other types may not use such an
 * id: they could block the run's request or the question's answer.
 */
function checkReservedIds(drafts: readonly CheckedDraft[]): void {
  for (const { id, fresh, body } of drafts) {
    if (fresh || !isReservedId(id) || isDerived(id, body, drafts)) continue;
    throw new SessionError(
      "INVALID_ID",
      `The id ${show(id)} is reserved for entries of runs and for answers to their questions; use another id.`,
    );
  }
}

function isDerived(id: string, body: EntryBody, drafts: readonly CheckedDraft[]): boolean {
  // The ids of these entries were already compared with the ids that they are derived from.
  if (body.type === "run_request" || body.type === "run_blocked") return true;
  if (body.type === "approval") return body.decision !== undefined && body.question !== undefined;
  const idOf = body.type === "message" ? inputIdOf : body.type === "leaf" ? moveIdOf : null;
  return idOf !== null && drafts.some(({ body: other }) => beginsRun(other) && idOf(other.runId) === id);
}

function beginsRun(body: EntryBody): body is Extract<EntryBody, { type: "run" | "run_request" }> {
  return body.type === "run_request" || (body.type === "run" && body.phase === "started");
}

function checkDraft(
  draft: EntryDraft,
  what: string,
  { verbatim, by: byAll, run: runOfAll }: DraftOptions,
): CheckedDraft {
  if (typeof draft !== "object" || draft === null || Array.isArray(draft)) {
    throw new SessionError("INVALID_ENTRY", `${what} is not an object.`);
  }
  const { id, timestamp, parentId, by } = draft;
  if (verbatim && given.has(draft)) {
    const stamp = { id: id as string, fresh: false, timestamp: timestamp as string, parentId };
    return { ...stamp, by: byAll, run: draft.run, inherited: draft.inherited, body: bodyOf(draft) };
  }
  if (id !== undefined) checkName(id, "an entry");
  if (by !== undefined) checkName(by, "a user");
  if (verbatim && draft.run !== undefined) checkName(draft.run, "a run");
  if (timestamp !== undefined && !isTimestamp(timestamp)) {
    throw new SessionError(
      "INVALID_ENTRY",
      `${what} has the timestamp ${show(timestamp)}, which is not an ISO-8601 time with milliseconds, in UTC.`,
    );
  }
  const body = copyBody(draft, what);
  // A copy is a new object; an object that is already known to be checked was not copied and needs no further check.
  if (!(body.type === "message" && isCheckedMessage(body.message))) checkBody(body, what, verbatim);
  // A verbatim copy keeps what an old log recorded; sums stay finite in any case.
  const excess = verbatim ? null : excessProblem(body);
  if (excess !== null) throw new SessionError("INVALID_ENTRY", `${what} (${show(body.type)}) is not valid: ${excess}.`);
  if (verbatim && parentId !== undefined && parentId !== null) checkName(parentId, "an entry");
  const problem = verbatim ? null : idProblem(body, id);
  if (problem !== null)
    throw new SessionError("INVALID_ENTRY", `${what} (${show(body.type)}) is not valid: ${problem}.`);
  return {
    id: id ?? uuidv7(),
    fresh: id === undefined,
    timestamp: timestamp ?? null,
    parentId: verbatim ? parentId : undefined,
    by: by ?? byAll,
    run: verbatim ? (draft.run ?? runOfAll) : runOfAll,
    inherited: verbatim && draft.inherited === true ? true : undefined,
    body,
  };
}

/** Why an id that is reserved for a certain kind of entry is wrong for this one; null if it is right. */
function idProblem(body: EntryBody, id: string | undefined): string | null {
  if (body.type === "run_request" && !isRunId(body.runId))
    return `its runId is ${show(body.runId)}, and one that ends with /input, /from or /blocked/… names an entry of another run`;
  const wanted =
    body.type === "run_request"
      ? requestIdOf(body.runId)
      : body.type === "approval" && body.decision !== undefined && body.question !== undefined
        ? answerIdOf(body.question)
        : body.type === "run_blocked"
          ? blockedIdOf(body.runId, body.code)
          : id;
  return wanted === id ? null : `its id is ${show(id)}, not ${show(wanted)}`;
}

/** The body of a draft that has nothing but a checked message; null for all other drafts. */
function checkedBody(draft: EntryDraft): EntryBody | null {
  const { type, message } = draft as { readonly type: string; readonly message?: unknown };
  if (type !== "message" || !isCheckedMessage(message) || Object.keys(draft).length !== 2) return null;
  return Object.freeze({ type, message });
}

function checkBody(body: EntryBody, what: string, verbatim: boolean): void {
  if (!isKnownType(body.type) && !verbatim) {
    throw new SessionError(
      "INVALID_ENTRY",
      `${what} has the unknown type ${show(body.type)}; use "custom" for data of your own.`,
    );
  }
  if (body.type === "lost")
    throw new SessionError("INVALID_ENTRY", `${what} is a placeholder of a salvaged file and cannot be stored.`);
  const problem = bodyProblem(body);
  if (problem !== null)
    throw new SessionError("INVALID_ENTRY", `${what} (${show(body.type)}) is not valid: ${problem}.`);
}

function copyBody(draft: EntryDraft, what: string): EntryBody {
  try {
    const body = checkedBody(draft) ?? (copyJsonWithout(draft, STAMP_FIELDS, "entry") as unknown as EntryBody);
    checkSize(body, what);
    return body;
  } catch (cause) {
    if (cause instanceof SessionError) throw cause;
    const problem = cause instanceof NotJson ? cause.message : "it cannot be read";
    throw new SessionError("INVALID_VALUE", `${what} cannot be stored: ${problem}.`, { cause });
  }
}

function checkSize(body: EntryBody, what: string): void {
  const bytes = sizeOf(body);
  if (bytes <= ENTRY_BYTES_MAX) return;
  throw new SessionError("TOO_LARGE", `${what} takes ${bytes} bytes; one entry may take ${ENTRY_BYTES_MAX}.`);
}

/** The bytes of a value as JSON: an upper bound for small values, the exact number for values near the limit. */
function sizeOf(body: EntryBody): number {
  const bound = boundOf(body, 0);
  if (bound <= ENTRY_BYTES_MAX || bound === Number.POSITIVE_INFINITY) return bound;
  try {
    return new TextEncoder().encode(JSON.stringify(body)).length;
  } catch {
    return bound; // Its JSON exceeds the longest possible string; return a bound that is refused.
  }
}

/** Infinity for a value that a log cannot store; a copied value has no such parts. */
function boundOf(value: unknown, depth: number): number {
  // A UTF-16 unit takes at most six bytes in JSON (as a \u escape).
  if (typeof value === "string") return value.length * 6 + 2;
  if (typeof value !== "object" || value === null) return 32;
  if (depth >= JSON_DEPTH_MAX) return Number.POSITIVE_INFINITY;
  let bytes = 2;
  if (Array.isArray(value)) {
    for (const item of value) bytes += 1 + boundOf(item, depth + 1);
    return bytes;
  }
  for (const key in value) {
    if (key === "__proto__") return Number.POSITIVE_INFINITY;
    bytes += key.length * 6 + 4 + boundOf((value as Record<string, unknown>)[key], depth + 1);
  }
  return bytes;
}
