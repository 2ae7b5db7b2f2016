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

/** A draft that was checked, and copied unless it was given away: nothing the caller does later can change it. */
export interface CheckedDraft {
  readonly id: string;
  /** The id was made here, so no entry can have it yet. */
  readonly fresh: boolean;
  readonly timestamp: string | null;
  /** The parent of an entry copied from another log; otherwise undefined, as the store decides. */
  readonly parentId: string | null | undefined;
  /** The user who caused it. */
  readonly by: string | undefined;
  /** The run that appends it. */
  readonly run: string | undefined;
  readonly inherited: true | undefined;
  readonly body: EntryBody;
}

/** A draft with all that a copied entry carries. */
export type WholeDraft = EntryDraft & {
  readonly id: string;
  readonly parentId: string | null;
  readonly timestamp: string;
};

/** Drafts that were checked and given away. */
const given = createBrand();

/**
 * Gives a draft away that is made of JSON values which only the caller has, and lets go of: `create` takes it as it is
 * instead of a copy. False where a log cannot hold it, or it says more than a new entry may.
 */
export function giveDraft(draft: WholeDraft): boolean {
  if (!isName(draft.id) || !isTimestamp(draft.timestamp) || sizeOf(draft) > ENTRY_BYTES_MAX) return false;
  if (bodyProblem(draft as unknown as JsonObject) !== null || excessProblem(draft) !== null) return false;
  given.add(draft);
  return true;
}

/** What holds for all drafts of one append. */
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
  // A loop, as `map` steps over the holes of a sparse list and `Array.from` takes longer, which every append would.
  for (let index = 0; index < drafts.length; index++) {
    const what = drafts.length === 1 ? "The entry" : `Entry ${index}`;
    checked.push(checkDraft(drafts[index] as EntryDraft, what, options));
  }
  if (!options.verbatim) checkReservedIds(checked);
  return checked;
}

/**
 * An id that is derived from a run or a question belongs to the entry that it is derived for: whoever could take it first
 * would keep others from asking for the run or from answering the question.
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
  // The ids of these were compared with what they are derived from.
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
  // What was copied is a new object, so that a message which is known already was not copied and needs no check.
  if (!(body.type === "message" && isCheckedMessage(body.message))) checkBody(body, what, verbatim);
  // A copy keeps what an old log says; sums stay finite whatever that is.
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

/** What is wrong with the id of an entry whose id says what it is for, or null. */
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

/** The body of a draft that is a checked message and nothing else; null for all others. */
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

/** An upper bound of the bytes of a value as JSON while it is small, the exact number once it could matter. */
function sizeOf(body: EntryBody): number {
  const bound = boundOf(body, 0);
  if (bound <= ENTRY_BYTES_MAX || bound === Number.POSITIVE_INFINITY) return bound;
  try {
    return new TextEncoder().encode(JSON.stringify(body)).length;
  } catch {
    return bound; // Its JSON is too long for any text, so the bound is large enough to be refused.
  }
}

/** Infinite for what a log could not hold at any size; what was copied has none of it. */
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
