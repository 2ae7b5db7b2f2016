import { nextSlice } from "../internal/long-work.ts";
import { type Entry, entryCharacters, isNode } from "../session/log/entry.ts";
import { notANode, SessionNotFoundError, UnknownEntryError } from "../session/errors.ts";
import { EMPTY_PATH, type PathSummary, type SessionHead } from "../session/log/fold.ts";
import type { SessionStore } from "../session/store.ts";
import { walkUp } from "../tree/path-reader.ts";
import type { SteppedSanitizer } from "./sanitizer.ts";

/** How many characters are worked on before others of the program have their turn. */
const SLICE_CHARACTERS = 256 * 1024;

/** The session that is exported, as it stood when the export began. */
export interface ExportSource {
  readonly store: SessionStore;
  readonly head: SessionHead;
  /** Where the path that is exported ends. */
  readonly leafId: string | null;
  readonly sanitizer: SteppedSanitizer | null;
}

/** What must be known of a log before its path can be shown. */
export interface Survey {
  /** The ids of the nodes on the path. */
  readonly onPath: ReadonlySet<string>;
  readonly path: PathSummary;
  readonly labels: ReadonlyMap<string, string>;
  /** The nodes beside the path, by the node of the path that they hang on; null is before the root. */
  readonly branches: ReadonlyMap<string | null, BranchPoint>;
}

/** A node of a path that has branches beside it. */
export interface BranchPoint {
  readonly count: number;
  /** The first few of them. */
  readonly firstIds: readonly string[];
}

const BRANCHES_NAMED_MAX = 5;

/**
 * The entries of the log, oldest first, up to where it ended when the export began.
 *
 * @throws {SessionNotFoundError} when the session was deleted meanwhile, so that no export ends early in silence.
 */
export async function* readEntries({ store, head }: ExportSource): AsyncGenerator<Entry, void, undefined> {
  let read = 0;
  let characters = 0;
  if (head.version > 0) {
    for await (const entry of store.read(head.header.id, { before: head.version })) {
      read += 1;
      characters += entryCharacters(entry);
      if (characters > SLICE_CHARACTERS) {
        await nextSlice();
        characters = 0;
      }
      yield entry;
    }
  }
  if (read < head.version) throw new SessionNotFoundError(head.header.id);
}

/** The ids of the nodes from the root to a leaf. @throws {SessionError} for a leaf that is not there, or is a fact. */
export async function readPathIds(store: SessionStore, sessionId: string, leafId: string | null): Promise<Set<string>> {
  const ids = new Set<string>();
  if (leafId === null) return ids;
  await checkNode(store, sessionId, leafId);
  for await (const { id } of walkUp(store, sessionId, leafId)) ids.add(id);
  return ids;
}

/** Apart, so that a leaf that is large is not held while its path is read. */
async function checkNode(store: SessionStore, sessionId: string, leafId: string): Promise<void> {
  const leaf = await store.getEntry(sessionId, leafId);
  if (leaf === null) throw new UnknownEntryError(sessionId, leafId);
  if (!isNode(leaf)) throw notANode(sessionId, leafId);
}

/** Reads the log once: for what hangs on the path, for the labels, and for the secrets that are to be taken out. */
export async function surveyLog(source: ExportSource): Promise<Survey> {
  const { store, head, leafId, sanitizer } = source;
  const onPath = await readPathIds(store, head.header.id, leafId);
  const labels = new Map<string, string>();
  const beside = new Map<string, string | null>();
  sanitizer?.learn(cleanValue([head.header, head.name]));
  for await (const entry of readEntries(source)) {
    if (sanitizer !== null) await inSlices(sanitizer.learnSteps(cleanValue(entry)));
    if (entry.type === "label" && onPath.has(entry.targetId)) {
      if (entry.label === null) labels.delete(entry.targetId);
      else labels.set(entry.targetId, entry.label);
    }
    // A branch that was pruned is hidden for good, also in an export.
    if (entry.type === "prune") beside.delete(entry.targetId);
    if (!isNode(entry) || onPath.has(entry.id)) continue;
    if (entry.parentId === null || onPath.has(entry.parentId)) beside.set(entry.id, entry.parentId);
  }
  const path = leafId === null ? EMPTY_PATH : ((await store.path(head.header.id, leafId)) ?? EMPTY_PATH);
  return { onPath, path, labels, branches: groupByParent(beside) };
}

/** Does work step by step, so that others of the program have their turn between two steps. */
export async function inSlices<T>(steps: Generator<void, T>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await nextSlice();
  }
}

/** The same as `shown`, for what may be large. */
export async function shownInSlices<T>({ sanitizer }: ExportSource, value: T): Promise<T> {
  const clean = cleanValue(value);
  return sanitizer === null ? clean : inSlices(sanitizer.sanitizeSteps(clean));
}

/** What of a value is shown: without what steers a terminal, and without secrets where those are not wanted. */
export function shown<T>({ sanitizer }: ExportSource, value: T): T {
  // Cleaned first: taking a control character out of a secret that it hid would bring the secret back.
  const clean = cleanValue(value);
  return sanitizer === null ? clean : sanitizer.sanitize(clean);
}

function groupByParent(beside: ReadonlyMap<string, string | null>): Map<string | null, BranchPoint> {
  const branches = new Map<string | null, { count: number; firstIds: string[] }>();
  for (const [id, parentId] of beside) {
    const point = branches.get(parentId) ?? { count: 0, firstIds: [] };
    point.count++;
    if (point.firstIds.length < BRANCHES_NAMED_MAX) point.firstIds.push(id);
    branches.set(parentId, point);
  }
  return branches;
}

/** Sequences that steer a terminal: colours and movements, titles and links, and single escapes. */
const TERMINAL =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters to find.
  /[\u001b]\[[0-?]{0,64}[ -/]{0,8}[@-~]|[\u001b]\][^\u0007\u001b]{0,4096}(?:\u0007|\u001b\\)|[\u001b][@-Z\\-_]/g;
/** Controls other than tab and newline, and the marks that make a text show in another order than it is written. */
const CONTROLS = /(?![\t\n])\p{Cc}|[\u202a-\u202e\u2066-\u2069]/gu;

/**
 * A text or a JSON value as a reader sees it: lines end in a newline, and nothing in it steers a terminal or turns the text
 * around. Keys stay.
 */
function cleanValue<T>(value: T): T {
  return clean(value) as T;
}

function clean(value: unknown): unknown {
  if (typeof value === "string") return cleanText(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(clean);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clean(item)]));
}

function cleanText(text: string): string {
  return (
    text
      .replace(TERMINAL, "")
      // Markdown takes a lone carriage return for the end of a line.
      .replace(/\r\n?/g, "\n")
      .replace(CONTROLS, "")
      // Half of a surrogate pair is not a character.
      .replace(/\p{Cs}/gu, "\ufffd")
  );
}
